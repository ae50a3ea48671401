#include "libs/testing/mini_cluster.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/testing/shell.h"

namespace fluxqueue::testing {
namespace {

std::string Tool(const char* name) {
  return fmt::format("{}/tools/cluster/{}", FLUXQUEUE_SOURCE_DIR, name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MiniCluster>> MiniCluster::Start(MiniClusterOptions options) {
  std::string folder =
      (std::filesystem::temp_directory_path() / "fluxqueue-cluster-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return Unavailable("cannot make the folder {}", folder);
  std::string command = fmt::format("{} {} --unsafe-no-fsync --parent {} --nodes {}",
                                    Tool("start"),
                                    ShellQuote(folder),
                                    getpid(),
                                    options.nodes);
  for (const std::string& argument : options.arguments) command += " " + ShellQuote(argument);
  std::unique_ptr<MiniCluster> cluster(new MiniCluster(std::move(folder), command + " 2>&1"));
  RETURN_IF_ERROR(cluster->StartApiServer());
  return cluster;
}

MiniCluster::~MiniCluster() {
  if (const auto stopped = Run(Tool("stop") + " " + ShellQuote(folder_) + " 2>&1"); !stopped.ok()) {
    fprintf(stderr, "%s\n", Message(stopped.status()).c_str());
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::string> MiniCluster::Kubectl(const std::vector<std::string>& arguments,
                                                 const std::string& input) {
  const std::string input_file = folder_ + "/kubectl-input";
  const std::string error_file = folder_ + "/kubectl-error";
  std::ofstream(input_file) << input;
  auto output = Run(fmt::format("{} <{} 2>{}",
                                KubectlCommand(kubeconfig(), arguments),
                                ShellQuote(input_file),
                                ShellQuote(error_file)));
  if (output.ok()) return output;
  std::ifstream errors(error_file);
  return Unavailable(
      "{}{}", Message(output.status()), std::string(std::istreambuf_iterator<char>(errors), {}));
}

absl::Status MiniCluster::KillApiServer() {
  std::ifstream file(folder_ + "/logs/kube-apiserver.pid");
  pid_t pid = 0;
  if (!(file >> pid) || pid <= 1) return Unavailable("no API server runs in {}", folder_);
  if (kill(pid, SIGKILL) != 0) return Unavailable("the API server ({}) runs no more", pid);
  return absl::OkStatus();
}

absl::Status MiniCluster::StartApiServer() {
  return Run(start_command_).status();
}

}  // namespace fluxqueue::testing
