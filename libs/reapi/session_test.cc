#include "libs/reapi/session.h"

#include <gtest/gtest.h>

namespace fluxqueue::reapi {
namespace {

TEST(Session, X) {}

}  // namespace
}  // namespace fluxqueue::reapi
