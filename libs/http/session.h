// One connection of the server, private to this library. All of it runs on the connection's strand.
#pragma once

#include <memory>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "libs/base/clock.h"
#include "libs/http/message.h"

namespace fluxqueue::http::internal {

class Session {
 public:
  virtual ~Session() = default;
  virtual void Start() = 0;
  // Closes at once if no request is under way, else after its answer. Thread-safe.
  virtual void CloseWhenIdle() = 0;
};

// What a session needs of its server. Outlives all sessions' operations.
class SessionOwner {
 public:
  virtual Response Answer(const Request& request) = 0;
  virtual bool stopping() const = 0;
  virtual size_t max_body_bytes() const = 0;
  virtual Millis idle_timeout() const = 0;
  // Called by the session's destructor.
  virtual void Gone(Session* session) = 0;

 protected:
  ~SessionOwner() = default;
};

// Plain when `tls` is null. The socket's executor must be a strand.
std::shared_ptr<Session> MakeSession(SessionOwner& owner,
                                     boost::asio::ip::tcp::socket socket,
                                     std::shared_ptr<boost::asio::ssl::context> tls);

}  // namespace fluxqueue::http::internal
