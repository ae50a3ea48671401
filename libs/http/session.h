// One connection of the server, private to this library. All of it runs on the thread of the
// connection's io_context, but for what is said to be thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "libs/http/message.h"
#include "libs/http/server.h"
#include "libs/http/tls.h"

namespace fluxqueue::http::internal {

using Socket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

class Session {
 public:
  virtual ~Session() = default;
  virtual void Start() = 0;
  // Closes at once if no request has begun to come, else after its answer. Thread-safe.
  virtual void CloseWhenIdle() = 0;
  // Closes at once, unless its request is being answered. Thread-safe.
  virtual void Evict(Refusal why) = 0;
  // Closes at once if its deadline is over. Thread-safe.
  virtual void CutOff() = 0;

  // What it waits for must be over by then. Thread-safe.
  bool IsLate(std::chrono::steady_clock::time_point now) const {
    return now.time_since_epoch().count() > deadline_.load(std::memory_order_relaxed);
  }

 protected:
  void SetDeadline(Millis timeout) {
    deadline_.store((std::chrono::steady_clock::now() + timeout).time_since_epoch().count(),
                    std::memory_order_relaxed);
  }
  void ClearDeadline() { deadline_.store(kNever, std::memory_order_relaxed); }

 private:
  using Ticks = std::chrono::steady_clock::rep;
  static constexpr Ticks kNever = std::numeric_limits<Ticks>::max();

  std::atomic<Ticks> deadline_{kNever};
};

// What a session needs of its server. Outlives all sessions' operations. Thread-safe.
class SessionOwner {
 public:
  virtual const ServerOptions& options() const = 0;
  // No connection is kept for another request.
  virtual bool draining() const = 0;
  virtual bool stopping() const = 0;
  // `respond` is called once.
  virtual void Answer(const Request& request, Respond respond) = 0;
  // A request's head has come, with a body of at most `body_bytes`. Set: it must not be read.
  virtual std::optional<Refusal> Begin(Session* session, size_t body_bytes) = 0;
  // The request has come as a whole: it is being answered, and keeps its connection.
  virtual void Received(Session* session) = 0;
  // The answer has been sent.
  virtual void End(Session* session) = 0;
  virtual void Refused(Refusal refusal) = 0;
  // Called by the session's destructor.
  virtual void Gone(Session* session) = 0;

 protected:
  ~SessionOwner() = default;
};

// Plain when `tls` is null.
std::shared_ptr<Session> MakeSession(SessionOwner& owner, Socket socket, TlsContext tls);

}  // namespace fluxqueue::http::internal
