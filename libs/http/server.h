// An HTTP/1.1 server, plain or TLS (1.2 and newer): keep-alive, threads, bounds on what clients may
// take. For the webhook and for /livez, /readyz and /metrics.
//
//   http::Router router;
//   router.Add("GET", "/livez", [](const http::Request&) { return http::Response{.body = "ok\n"};
//   }); ASSIGN_OR_RETURN(auto server, http::Server::Start({.port = 9102}, router.AsHandler()));
//
// What the server answers by itself: 400 to what is not HTTP, 413 to a body above the limit (then
// it closes), 431 to headers above 64 KiB, 429 to a source that has too many requests under way,
// 503 while the bodies of all requests take too much memory, 403 to a client without the
// certificate that is wanted (the body of its request is not read), 500 when a handler throws. TLS
// files are read again when they change; if the new ones are unusable the old ones stay and the log
// says so.
//
// Connections. When there are as many as allowed, a new one takes the place of one that waits for
// its client: first of one that has not sent a whole request yet, the oldest; then of the one whose
// last request is longest ago. So who opens connections and leaves them idle, or sends a byte now
// and then, cannot keep others out. Only where all are being answered is the new one closed.
//
// Stopping. A client that keeps connections writes its next request into one of them, and cannot
// know whether the server read it if that is closed meanwhile: the API server then refuses what a
// user makes. So with `drain` the server first goes on as before, but with each answer asks the
// client for a new connection, which others take when this server is no longer an endpoint. What
// has begun to come when it closes is read and answered.
//
// Thread-safe. A connection stays on the thread that it was given to, and its handler is called
// there: a slow handler delays the other connections of its thread. What takes long answers later
// (AsyncHandler).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/http/message.h"

#include "absl/status/statusor.h"

namespace fluxqueue::http {

using Handler = std::function<Response(const Request&)>;

// Called once, from any thread, until Server::Stop() has returned; may be dropped after that.
using Respond = std::function<void(Response)>;
// `request` is valid during the call only.
using AsyncHandler = std::function<void(const Request& request, Respond respond)>;

struct ServerTls {
  std::string certificate_file{};  // PEM, the chain, the server's own first
  std::string key_file{};          // PEM
  // PEM. Not empty: a client must show a certificate that one of these has signed …
  std::string client_authority_file{};
  // … and whose common name is one of these, as the API server's own rule for front proxies is;
  // empty: whatever it is.
  std::vector<std::string> client_names{};
  // What is answered without, too: for probes, whose makers have no certificate.
  std::vector<std::string> open_paths{};
};

// Why a connection or a request was turned away.
enum class Refusal {
  kConnections,  // all connections were being answered
  kEvicted,      // closed for a new one
  kSlow,         // handshake, request or taking the answer took too long
  kSource,       // too many requests of one source
  kMemory,       // the bodies of all requests are too large together
  kTooLarge,     // one body or head is
  kMalformed,    // no HTTP
  kCertificate,  // of the client: none, not of the authority, or of another name
};
// "connections", …, as a label of a metric.
std::string_view RefusalName(Refusal refusal);

struct ServerOptions {
  std::string address = "127.0.0.1";
  int port = 0;  // 0: any free one, see Server::port()
  int threads = 2;
  size_t max_connections = 256;
  size_t max_requests_per_source = 64;  // from a request's head to its answer
  size_t max_body_bytes = 4 << 20;
  size_t max_bodies_bytes = 64 << 20;  // of all requests that are under way
  Millis handshake_timeout{5'000};
  // From a request's first byte to its last; and for an answer to be taken.
  Millis request_timeout{10'000};
  Millis idle_timeout{60'000};  // between requests
  // How long Stop() still takes connections and requests.
  Millis drain{0};
  std::optional<ServerTls> tls{};
  // Called for each, from the server's threads; must not block.
  std::function<void(Refusal)> refused{};
};

class Server {
 public:
  // Listens when it returns. InvalidArgument: the address, or TLS files that cannot be read (which,
  // and why); FailedPrecondition: the port is in use or may not be opened.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, Handler handler);
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, AsyncHandler handler);

  ~Server();  // Stop()
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;

  // Drains; then accepts no more, lets requests under way be answered (up to `grace`), closes all
  // connections. Safe to call twice.
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
  void Add(std::string method, std::string path, AsyncHandler handler);

  // A copy of the routes as one handler.
  AsyncHandler AsHandler() const;

 private:
  std::map<std::string, std::map<std::string, AsyncHandler>> routes_;  // path → method → handler
};

}  // namespace fluxqueue::http
