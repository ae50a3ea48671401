#include "libs/testing/mini_server.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "libs/base/check.h"

namespace fluxqueue::testing {
namespace {

// Its output is shown when it fails.
void RunCommand(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  CHECK(pipe != nullptr, "cannot run {}", command);
  std::string output;
  std::array<char, 4096> buffer{};
  for (size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), n);
  }
  CHECK(pclose(pipe) == 0, "{} failed:\n{}", command, output);
}

}  // namespace

MiniServer::MiniServer(std::string name, std::string address_file, std::string options)
    : name_(std::move(name)), address_file_(std::move(address_file)), options_(std::move(options)) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / ("fluxqueue-" + name_ + "-XXXXXX")).string();
  CHECK(mkdtemp(pattern.data()) != nullptr, "cannot make the folder {}", pattern);
  folder_ = pattern;
  Start();
  std::ifstream file(std::filesystem::path(folder_) / address_file_);
  std::getline(file, address_);
  CHECK(!address_.empty(), "{}/{} holds no address", folder_, address_file_);
}

MiniServer::~MiniServer() {
  Stop();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void MiniServer::Start() {
  RunCommand(fmt::format("{}/tools/{}/start {} --parent {}{} {}",
                         FLUXQUEUE_SOURCE_DIR,
                         name_,
                         folder_,
                         getpid(),
                         name_ == "postgres" ? " --unsafe-no-fsync" : "",
                         options_));
}

void MiniServer::Stop() {
  RunTool("stop");
}

void MiniServer::RunTool(const std::string& tool) {
  RunCommand(fmt::format("{}/tools/{}/{} {}", FLUXQUEUE_SOURCE_DIR, name_, tool, folder_));
}

}  // namespace fluxqueue::testing
