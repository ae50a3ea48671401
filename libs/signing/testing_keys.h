// Keys for tests: a folder that goes with the object, KEYS/NAME.pem for readers and NAME.key for
// each who signs.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <stdlib.h>

#include "libs/base/check.h"

#include "fmt/format.h"

namespace fluxqueue::signing {

class TestingKeys {
 public:
  explicit TestingKeys(const std::vector<std::string>& names) {
    std::string folder =
        (std::filesystem::temp_directory_path() / "fluxqueue-keys-XXXXXX").string();
    CHECK(mkdtemp(folder.data()) != nullptr, "{}", folder);
    folder_ = folder;
    std::filesystem::create_directory(keys());
    for (const std::string& name : names) Make(name, name);
  }
  ~TestingKeys() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TestingKeys(const TestingKeys&) = delete;
  TestingKeys& operator=(const TestingKeys&) = delete;

  std::string keys() const { return folder_ + "/keys"; }
  std::string key_of(const std::string& name) const {
    return fmt::format("{}/{}.key", folder_, name);
  }

  // A key in the file NAME.key, good for what `as` signs beside those that are there.
  void Make(const std::string& name, const std::string& as) {
    Run(fmt::format(
        "openssl genpkey -algorithm ed25519 -out {0} && openssl pkey -in {0} -pubout >> "
        "{1}/{2}.pem",
        key_of(name),
        keys(),
        as));
  }

 private:
  static void Run(const std::string& command) {
    // NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): openssl, with texts of ours.
    CHECK(std::system(command.c_str()) == 0, "{}", command);
  }

  std::string folder_;
};

}  // namespace fluxqueue::signing
