#include "libs/postgres/answer_watch.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fluxqueue::postgres {
namespace {

// A connection costs no more than a look each second.
constexpr Millis kLongestPause{1000};

}  // namespace

AnswerWatch::~AnswerWatch() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  if (socket_ >= 0) ::close(socket_);
}

void AnswerWatch::Guard(int socket) {
  socket_ = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (socket_ < 0) {
    throw std::system_error(errno, std::generic_category(), "the connection's socket");
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void AnswerWatch::Answered() {
  // Also what libpq makes of its own when nothing is asked.
  if (waits_since_.load() != kNever) Restart();
}

void AnswerWatch::Run(const std::stop_token& stop) {
  const Millis pause = std::min(kLongestPause, least_ / 4);
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_for(lock, stop, pause, [] { return false; });
    // First: one that is read belongs to the call that is seen, or to one before it.
    const Millis patience = patience_;
    const TimePoint since = waits_since_;
    if (since == kNever || std::chrono::steady_clock::now() - since < patience) continue;
    // First: whoever is woken by it asks.
    gave_up_ = true;
    ::shutdown(socket_, SHUT_RDWR);
    return;
  }
}

}  // namespace fluxqueue::postgres
