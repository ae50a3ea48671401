// Where a test has its archive: a folder, or in $FLUXQUEUE_TEST_ARCHIVE ("s3://BUCKET", of
// tests/s3), where each test has a prefix of its own.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"

#include "tools/fluxqueue/archive_store.h"

namespace fluxqueue::cli {

// `folder`/`name`, or what stands for it.
inline std::shared_ptr<ArchiveStore> ArchiveOfTest(const std::string& folder,
                                                   const std::string& name = "pool") {
  const char* place = std::getenv("FLUXQUEUE_TEST_ARCHIVE");
  if (place == nullptr) return FolderStore(folder + "/" + name);
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  auto store =
      OpenArchive(fmt::format("{}/{}.{}/{}", place, test.test_suite_name(), test.name(), name));
  CHECK(store.ok(), "{}", Message(store.status()));
  return *std::move(store);
}

}  // namespace fluxqueue::cli
