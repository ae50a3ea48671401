#include "libs/fluxion/channel.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::fluxion {
namespace {

using Clock = std::chrono::steady_clock;

// When waiting is over; nothing: never.
class Deadline {
 public:
  explicit Deadline(Millis timeout) : never_(timeout == Millis(0)), at_(Clock::now() + timeout) {}

  // Waits for the socket. DeadlineExceeded.
  absl::Status Wait(int socket, short events) const {
    while (true) {
      const auto left = std::chrono::ceil<Millis>(at_ - Clock::now());
      if (!never_ && left <= Millis(0)) {
        return MakeStatus(absl::StatusCode::kDeadlineExceeded, "no answer in time");
      }
      pollfd one{.fd = socket, .events = events, .revents = 0};
      const int ready = poll(&one, 1, never_ ? -1 : static_cast<int>(left.count()));
      if (ready > 0) return absl::OkStatus();
      if (ready < 0 && errno != EINTR) return Unavailable("poll: errno {}", errno);
    }
  }

 private:
  bool never_;
  Clock::time_point at_;
};

// Moves all bytes by `once(at, bytes)`, which is send or recv.
template <typename Once>
absl::Status MoveAll(
    int socket, short events, const Deadline& deadline, char* bytes, size_t count, Once once) {
  for (size_t done = 0; done < count;) {
    const ssize_t moved = once(bytes + done, count - done);
    if (moved > 0) {
      done += static_cast<size_t>(moved);
    } else if (moved == 0) {
      return Unavailable("the other side is gone");
    } else if (errno == EAGAIN || errno == EINTR) {
      RETURN_IF_ERROR(deadline.Wait(socket, events));
    } else {
      return Unavailable("the other side is gone: errno {}", errno);
    }
  }
  return absl::OkStatus();
}

}  // namespace

Channel::Channel(int socket) : socket_(socket) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

Channel::~Channel() {
  close(socket_);
}

absl::Status Channel::Send(const nlohmann::json& message, Millis timeout) {
  std::string text(sizeof(uint32_t), '\0');
  text += message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const size_t length = text.size() - sizeof(uint32_t);
  if (length > kMaxMessage) {
    return InvalidArgument("a message of {} bytes; at most {} are sent", length, kMaxMessage);
  }
  for (size_t i = 0; i < sizeof(uint32_t); ++i) text[i] = static_cast<char>(length >> (8 * i));
  return MoveAll(socket_,
                 POLLOUT,
                 Deadline(timeout),
                 text.data(),
                 text.size(),
                 [this](const char* bytes, size_t count) {
                   return send(socket_, bytes, count, MSG_NOSIGNAL);
                 });
}

absl::StatusOr<nlohmann::json> Channel::Receive(Millis timeout) {
  const Deadline deadline(timeout);
  const auto receive = [this](char* bytes, size_t count) { return recv(socket_, bytes, count, 0); };
  std::array<char, sizeof(uint32_t)> head{};
  RETURN_IF_ERROR(MoveAll(socket_, POLLIN, deadline, head.data(), head.size(), receive));
  size_t length = 0;
  for (size_t i = 0; i < head.size(); ++i) {
    length |= size_t{static_cast<unsigned char>(head[i])} << (8 * i);
  }
  if (length > kMaxMessage) return Unavailable("the other side says {} bytes", length);
  std::string text(length, '\0');
  RETURN_IF_ERROR(MoveAll(socket_, POLLIN, deadline, text.data(), text.size(), receive));
  nlohmann::json message = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (message.is_discarded()) return Unavailable("the other side does not speak JSON");
  return message;
}

}  // namespace fluxqueue::fluxion
