#include "tools/fluxqueue/cluster_exec.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

constexpr int kNotFound = 127;
// What kubectl says when the command ran in the cluster and its exit status is not 0.
constexpr std::string_view kRan = "command terminated with exit code";

// Options that say how to reach the cluster: they mean nothing inside of it.
bool IsAccess(std::string_view name) {
  return name == "--kubeconfig" || name == "--context" || name == "--system-namespace";
}

std::chrono::seconds UtcOffset() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return std::chrono::seconds(local.tm_gmtoff);
}

[[noreturn]] void BecomeKubectl(const std::vector<std::string>& arguments, int out, int error) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  (void)std::signal(SIGINT, SIG_DFL);
  if (out >= 0) dup2(out, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  execvp("kubectl", pointers.data());
  _exit(kNotFound);
}

// Passes on what kubectl and, without a terminal, the command say on standard error, line by line.
std::string PassOn(int from) {
  std::string said;
  size_t shown = 0;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = read(from, buffer.data(), buffer.size())) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    said.append(buffer.data(), static_cast<size_t>(n));
    for (size_t end = 0; (end = said.find('\n', shown)) != said.npos; shown = end + 1) {
      const std::string_view line = std::string_view(said).substr(shown, end + 1 - shown);
      // The exit status says it.
      if (!line.starts_with(kRan)) fmt::print(stderr, "{}", line);
    }
  }
  fmt::print(stderr, "{}", std::string_view(said).substr(shown));
  return said;
}

}  // namespace

std::vector<std::string> KubectlArguments(const ClusterAccess& access,
                                          const std::vector<std::string>& arguments,
                                          const Here& here) {
  std::vector<std::string> result = {"kubectl"};
  if (!access.kubeconfig.empty()) result.push_back("--kubeconfig=" + access.kubeconfig);
  if (!access.context.empty()) result.push_back("--context=" + access.context);
  result.insert(result.end(), {"--namespace=" + access.space, "exec"});
  if (here.terminal) result.insert(result.end(), {"--stdin", "--tty"});
  result.insert(result.end(),
                {"deploy/fluxqueue-cli",
                 "--",
                 "fluxqueue",
                 fmt::format("--colour={}", here.colour ? "always" : "never"),
                 fmt::format("--width={}", here.width),
                 fmt::format("--utc-offset={}", here.utc_offset.count())});
  // Where the command line names the file, or does not: it has a name of its own then.
  bool writes = !here.file.empty();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    if (IsAccess(argument)) {
      ++i;  // and its value
    } else if (writes && argument == here.file) {
      result.emplace_back("-");
      writes = false;
    } else if (writes && equals != argument.npos && argument.substr(equals + 1) == here.file) {
      result.push_back(argument.substr(0, equals + 1) + "-");
      writes = false;
    } else if (!IsAccess(argument.substr(0, equals))) {
      result.push_back(argument);
    }
  }
  if (writes) result.emplace_back("-");
  return result;
}

std::string Advice(const std::string& said, const ClusterAccess& access) {
  const auto has = [&said](std::string_view words) {
    return said.find(words) != std::string::npos;
  };
  if (has("(NotFound)")) {
    return fmt::format(
        "there is no Deployment fluxqueue-cli in the namespace {}: install Fluxqueue with helm "
        "(deploy/helm/fluxqueue), or name its namespace with --system-namespace",
        access.space);
  }
  if (has("(Forbidden)")) {
    return fmt::format(
        "you may not run commands in the namespace {0}: ask its administrator for the Role of "
        "operators: kubectl create rolebinding NAME --namespace {0} --role fluxqueue-operator "
        "--user YOU",
        access.space);
  }
  if (has("no configuration has been provided") || has("connection refused") ||
      has("current-context")) {
    return "kubectl does not reach a cluster: name one with --kubeconfig FILE, $KUBECONFIG or "
           "--context; a system that tools/up has started is named with --config FILE";
  }
  return "";
}

absl::Status RunInCluster(const ClusterAccess& access,
                          const std::vector<std::string>& arguments,
                          Here here) {
  here.terminal = here.file.empty() && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  here.utc_offset = UtcOffset();
  int out = -1;
  if (!here.file.empty() && here.file != "-") {
    out = open(here.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (out < 0)
      return InvalidArgument("{}: cannot be written: {}", here.file, strerrordesc_np(errno));
  }
  const std::vector<std::string> command = KubectlArguments(access, arguments, here);
  std::array<int, 2> error{};
  if (pipe2(error.data(), O_CLOEXEC) != 0) return Internal("pipe: {}", strerrordesc_np(errno));
  // On a terminal ^C goes to kubectl too, and its end is ours.
  (void)std::signal(SIGINT, SIG_IGN);
  const pid_t child = fork();
  if (child < 0) return Unavailable("fork: {}", strerrordesc_np(errno));
  if (child == 0) BecomeKubectl(command, out, error[1]);
  close(error[1]);
  const std::string said = PassOn(error[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound && said.empty()) {
    return MakeStatus(
        absl::StatusCode::kNotFound,
        "kubectl is not on the PATH, through which a command reaches the cluster; a system "
        "that tools/up has started is named with --config FILE or $FLUXQUEUE_CONFIG");
  }
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (const std::string advice = good ? "" : Advice(said, access); !advice.empty()) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "{}", advice);
  }
  if (!WIFEXITED(status)) return Unavailable("kubectl was ended by signal {}", WTERMSIG(status));
  if (!good && said.find(kRan) == said.npos) {
    return Unavailable("kubectl could not run the command in the cluster, and says why above");
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  std::exit(WEXITSTATUS(status));
}

}  // namespace fluxqueue::cli
