#include "libs/fluxion/child_context.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/fluxion/channel.h"

extern char** environ;

namespace fluxqueue::fluxion {
namespace {

using nlohmann::json;

class ChildContext final : public Context {
 public:
  ChildContext(pid_t child, int socket, Millis timeout)
      : child_(child), channel_(socket), timeout_(timeout) {}
  ~ChildContext() override { End(); }
  ChildContext(const ChildContext&) = delete;
  ChildContext& operator=(const ChildContext&) = delete;

  absl::StatusOr<json> Call(const json& request, Millis timeout) {
    if (!ended_.ok()) return ended_;
    absl::Status sent = channel_.Send(request, timeout);
    absl::StatusOr<json> answer = sent.ok() ? channel_.Receive(timeout) : std::move(sent);
    if (!answer.ok()) {
      const std::string how = End();
      ended_ = Unavailable("the process of Fluxion's library {} ({}: {})",
                           how,
                           request.at("call").get<std::string>(),
                           Message(answer.status()));
      return ended_;
    }
    const auto code = static_cast<absl::StatusCode>(answer->at("code").get<int>());
    if (code != absl::StatusCode::kOk) {
      return MakeStatus(code, "{}", answer->at("message").get<std::string>());
    }
    return answer;
  }

  absl::StatusOr<Placed> Match(graph::MatchOperation operation,
                               const std::string& jobspec,
                               uint64_t job) override {
    ASSIGN_OR_RETURN(
        const json answer,
        Call({{"call", "match"}, {"operation", operation}, {"jobspec", jobspec}, {"job", job}},
             timeout_));
    return Placed{answer.at("reserved"), answer.at("at_s"), answer.at("resources")};
  }
  absl::Status Restore(uint64_t job, const std::string& resources) override {
    return Call({{"call", "restore"}, {"job", job}, {"resources", resources}}, timeout_).status();
  }
  absl::Status Cancel(uint64_t job) override {
    return Call({{"call", "cancel"}, {"job", job}}, timeout_).status();
  }
  absl::Status CancelPart(uint64_t job, const std::string& resources) override {
    return Call({{"call", "cancel_part"}, {"job", job}, {"resources", resources}}, timeout_)
        .status();
  }
  absl::StatusOr<std::string> Find(const std::string& criteria) override {
    ASSIGN_OR_RETURN(const json answer, Call({{"call", "find"}, {"criteria", criteria}}, timeout_));
    return answer.at("found").get<std::string>();
  }
  absl::Status SetUp(const std::string& path, bool up) override {
    return Call({{"call", "set_up"}, {"path", path}, {"up", up}}, timeout_).status();
  }

 private:
  // Ends the process, if it has not ended by itself; says how it did.
  std::string End() {
    if (child_ == 0) return "has ended";
    int status = 0;
    const bool by_itself = waitpid(child_, &status, WNOHANG) == child_;
    if (!by_itself) {
      kill(child_, SIGKILL);
      while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
      }
    }
    child_ = 0;
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      return fmt::format("was ended by SIG{}", sigabbrev_np(signal));
    }
    return fmt::format("ended with status {}", WEXITSTATUS(status));
  }

  pid_t child_;  // 0: it is no more
  Channel channel_;
  Millis timeout_;
  absl::Status ended_;
};

// Its standard input is the other end of `socket`.
absl::StatusOr<pid_t> Start(const std::string& program, int other_end) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, other_end, STDIN_FILENO);
  std::array<char*, 2> arguments = {const_cast<char*>(program.c_str()), nullptr};
  pid_t child = 0;
  const int error =
      posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return MakeStatus(
        absl::StatusCode::kNotFound, "{} cannot be started: {}", program, strerrordesc_np(error));
  }
  return child;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Context>> MakeChildContext(const ChildOptions& options,
                                                          const std::string& jgf,
                                                          const Context::Settings& settings) {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return Unavailable("socketpair: {}", strerrordesc_np(errno));
  }
  const absl::StatusOr<pid_t> child = Start(options.host, sockets[1]);
  close(sockets[1]);
  if (!child.ok()) {
    close(sockets[0]);
    return child.status();
  }
  auto context = std::make_unique<ChildContext>(*child, sockets[0], options.call_timeout);
  RETURN_IF_ERROR(context
                      ->Call({{"call", "open"},
                              {"library", options.library},
                              {"graph", jgf},
                              {"policy", settings.policy},
                              {"traverser", settings.traverser},
                              {"prune_filters", settings.prune_filters}},
                             options.load_timeout)
                      .status());
  return context;
}

}  // namespace fluxqueue::fluxion
