// An HTTP/1.1 server, plain or TLS (1.2 and newer): keep-alive, a thread pool, a limit on the body.
// For the webhook and for /livez, /readyz and /metrics.
//
//   http::Router router;
//   router.Add("GET", "/livez", [](const http::Request&) { return http::Response{.body = "ok\n"};
//   }); ASSIGN_OR_RETURN(auto server, http::Server::Start({.port = 9102}, router.AsHandler()));
//
// What the server answers by itself: 400 to what is not HTTP, 413 to a body above the limit (then
// it closes), 431 to headers above 64 KiB, 500 when a handler throws. A connection that is silent
// longer than `idle_timeout` is closed. TLS files are read again when they change; if the new ones
// are unusable the old ones stay and the log says so.
//
// Thread-safe. The handler is called from the pool's threads, several at a time; a slow handler
// holds one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "libs/base/clock.h"
#include "libs/http/message.h"

#include "absl/status/statusor.h"

namespace fluxqueue::http {

using Handler = std::function<Response(const Request&)>;

struct ServerTls {
  std::string certificate_file{};  // PEM, the chain, the server's own first
  std::string key_file{};          // PEM
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  int port = 0;  // 0: any free one, see Server::port()
  int threads = 2;
  size_t max_body_bytes = 4 << 20;
  Millis idle_timeout{60'000};
  std::optional<ServerTls> tls{};
};

class Server {
 public:
  // Listens when it returns. InvalidArgument: the address, or TLS files that cannot be read (which,
  // and why); FailedPrecondition: the port is in use or may not be opened.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, Handler handler);

  ~Server();  // Stop()
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;

  // Accepts no more, lets requests under way be answered (up to `grace`), closes all connections.
  // Safe to call twice.
  void Stop(Millis grace = Millis(5'000));

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// Exact paths to handlers: 404 names the paths there are, 405 the methods. Filled before use, then
// read only.
class Router {
 public:
  void Add(std::string method, std::string path, Handler handler);

  // A copy of the routes as one handler.
  Handler AsHandler() const;

 private:
  std::map<std::string, std::map<std::string, Handler>> routes_;  // path → method → handler
};

}  // namespace fluxqueue::http
