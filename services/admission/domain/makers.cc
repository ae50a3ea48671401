#include "services/admission/domain/makers.h"

#include <fmt/format.h>

#include "libs/kubernetes/ownership.h"

namespace fluxqueue::admission {

bool MakesForOthers(std::string_view user, std::string_view space) {
  constexpr std::string_view kServiceAccount = "system:serviceaccount:";
  if (kubernetes::IsOfTheCluster(user)) return true;
  if (!user.starts_with(kServiceAccount)) return false;
  user.remove_prefix(kServiceAccount.size());
  return user.substr(0, user.find(':')) != space;
}

std::string UnknownMakerOf(std::string_view space) {
  return fmt::format("namespace:{}", space);
}

}  // namespace fluxqueue::admission
