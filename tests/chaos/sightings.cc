#include "tests/chaos/sightings.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/check.h"
#include "libs/testing/shell.h"

namespace fluxqueue::chaos {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kNothing = "<none>";
constexpr milliseconds kBetweenWatches{100};
constexpr int kLookMs = 100;

// A shell command whose output we read as it comes; ended with the object.
class Output {
 public:
  explicit Output(const std::string& command) {
    std::array<int, 2> ends{};
    CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, "no pipe for {}", command);
    std::string words = "exec " + command + " 2>/dev/null";
    std::array<char*, 4> arguments = {
        const_cast<char*>("sh"), const_cast<char*>("-c"), words.data(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    const int error = posix_spawn(&process_, "/bin/sh", &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    CHECK(error == 0, "cannot start {}", command);
    close(ends[1]);
    end_ = ends[0];
  }
  ~Output() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(end_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // What has come, "" for nothing yet; nothing at all: it has ended.
  std::optional<std::string> Read() {
    pollfd ready{end_, POLLIN, 0};
    if (poll(&ready, 1, kLookMs) <= 0) return "";
    std::array<char, 65536> buffer{};
    const ssize_t size = read(end_, buffer.data(), buffer.size());
    if (size <= 0) return std::nullopt;
    return std::string(buffer.data(), static_cast<size_t>(size));
  }

 private:
  pid_t process_ = 0;
  int end_ = -1;
};

}  // namespace

std::optional<Bound> ParseBound(std::string_view line) {
  const std::vector<std::string> columns =
      absl::StrSplit(std::string(line), ' ', absl::SkipEmpty());
  if (columns.size() != 3 || columns[1] == kNothing || columns[2] == kNothing) return std::nullopt;
  return Bound{.pod = columns[0], .owner = columns[1]};
}

Sightings::Sightings(std::string kubeconfig, std::string in_namespace)
    : kubeconfig_(std::move(kubeconfig)),
      namespace_(std::move(in_namespace)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Sightings::~Sightings() {
  thread_.request_stop();
  thread_.join();
}

int Sightings::PodsOf(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = owners_.find(owner);
  return found == owners_.end() ? 0 : static_cast<int>(found->second.size());
}

void Sightings::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Watch(stop);
    std::this_thread::sleep_for(kBetweenWatches);
  }
}

void Sightings::Watch(const std::stop_token& stop) {
  Output output(testing::KubectlCommand(
      kubeconfig_,
      {"get",
       "pods",
       "-n",
       namespace_,
       "--watch",
       "--no-headers",
       "-o",
       "custom-columns=N:.metadata.name,O:.metadata.ownerReferences[0].name,W:.spec.nodeName"}));
  std::string begun;
  while (!stop.stop_requested()) {
    const std::optional<std::string> more = output.Read();
    if (!more.has_value()) return;
    begun += *more;
    for (size_t end = 0; (end = begun.find('\n')) != std::string::npos; begun.erase(0, end + 1)) {
      See(std::string_view(begun).substr(0, end));
    }
  }
}

void Sightings::See(std::string_view line) {
  const std::optional<Bound> bound = ParseBound(line);
  if (!bound.has_value()) return;
  const std::lock_guard lock(mutex_);
  owners_[bound->owner].insert(bound->pod);
}

}  // namespace fluxqueue::chaos
