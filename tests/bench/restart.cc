#include "tests/bench/restart.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>

#include "libs/base/status_macros.h"
#include "tests/bench/await.h"
#include "tests/bench/probe.h"

namespace fluxqueue::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{5};

// Words that end with a zero byte each, as /proc has them, for exec; they point into `words`.
std::vector<char*> Words(std::string& words) {
  std::vector<char*> pointers;
  for (size_t at = 0; at < words.size(); at = words.find('\0', at) + 1) {
    pointers.push_back(words.data() + at);
  }
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<int> Spawn(std::string command, std::string environment, const std::string& log) {
  const std::vector<char*> arguments = Words(command);
  const std::vector<char*> variables = Words(environment);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, arguments[0], &files, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return Internal("start {}: {}", arguments[0], std::strerror(error));
  return pid;
}

}  // namespace

absl::StatusOr<double> RestartSeconds(const std::string& folder,
                                      const std::string& service,
                                      Millis timeout) {
  const std::string logs = fmt::format("{}/logs/{}-1", folder, service);
  const int pid = ReadNumber(logs + ".pid");
  const int port = ReadNumber(fmt::format("{}/config/{}-1.ports", folder, service));
  const std::string command = ReadAll(fmt::format("/proc/{}/cmdline", pid));
  const std::string environment = ReadAll(fmt::format("/proc/{}/environ", pid));
  if (pid == 0 || port == 0 || command.empty()) return Unavailable("{}-1 does not run", service);

  kill(pid, SIGKILL);
  ASSIGN_OR_RETURN(const bool ended, Await(timeout, kLook, [pid] { return !ReadUsage(pid).ok(); }));
  if (!ended) {
    return Unavailable("{}-1 was killed and does not end", service);
  }
  const auto begin = SteadyClock::now();
  ASSIGN_OR_RETURN(const int started, Spawn(command, environment, logs + ".log"));
  std::ofstream(logs + ".pid") << started << "\n";
  const std::string server = fmt::format("http://127.0.0.1:{}", port);
  ASSIGN_OR_RETURN(const bool ready,
                   Await(timeout, kLook, [&server] { return Fetch(server, "/readyz").ok(); }));
  if (!ready) {
    return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                      "{}-1 is not ready {} s after its start; its log: {}.log",
                      service,
                      timeout.count() / 1000,
                      logs);
  }
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

}  // namespace fluxqueue::bench
