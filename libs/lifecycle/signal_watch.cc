#include "libs/lifecycle/signal_watch.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "libs/base/check.h"
#include "libs/base/log.h"

namespace fluxqueue::lifecycle {

SignalWatch::SignalWatch(std::function<void(const std::string&)> on_first)
    : on_first_(std::move(on_first)) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  const int blocked = ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  CHECK(blocked == 0, "pthread_sigmask: {}", blocked);
  std::signal(SIGPIPE, SIG_IGN);
  signal_fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC);
  stop_fd_ = ::eventfd(0, EFD_CLOEXEC);
  CHECK(signal_fd_ >= 0 && stop_fd_ >= 0, "signalfd, eventfd: errno {}", errno);
  thread_ = std::jthread([this] { Run(); });
}

SignalWatch::~SignalWatch() {
  const uint64_t one = 1;
  CHECK(::write(stop_fd_, &one, sizeof one) == sizeof one, "errno {}", errno);
  thread_.join();
  ::close(stop_fd_);
  ::close(signal_fd_);
}

void SignalWatch::Run() {
  bool seen = false;
  while (true) {
    std::array<pollfd, 2> fds = {{{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;  // interrupted
    if (fds[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signal_fd_, &info, sizeof info) != sizeof info) continue;
    const std::string name = info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT";
    if (seen) {
      LogError("second signal, ending at once", {{"signal", name}});
      std::_Exit(1);
    }
    seen = true;
    on_first_(name);
  }
}

}  // namespace fluxqueue::lifecycle
