// An HTTP(S) client for one server, made for many short calls with low latency and for endless
// streams.
//
// Connections are kept alive and pooled: as many calls as there are threads run at once, each on a
// connection of its own, taken from the idle ones first (TCP_NODELAY, no new name lookup, TLS
// session kept). A kept connection that the server has closed meanwhile is replaced without the
// caller seeing it.
//
// Errors are of the transport only: Unavailable (cannot connect, certificate not believed,
// connection lost), DeadlineExceeded (no whole answer in time: whether the server acted is
// unknown), Cancelled (stop requested, or the sink said stop), InvalidArgument (not a URL). Every
// HTTP status, 500 too, is an OK Response. Proxies from the environment are not used.
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/http/message.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::http {

// PEM texts; empty: not used.
struct ClientTls {
  std::string ca{};  // empty: the system's
  std::string certificate{};
  std::string key{};
  bool insecure = false;  // believe any certificate
};

struct ClientOptions {
  std::string base_url{};  // "https://127.0.0.1:6443", without a closing slash
  ClientTls tls{};
  // Asked for each request: the bearer token, or empty.
  std::function<std::string()> bearer_token{};
  Millis connect_timeout{5'000};
  std::string user_agent = "fluxqueue";
};

struct ClientRequest {
  std::string method = "GET";
  std::string target{};  // "/api/v1/pods?limit=500", already escaped; sent as it is
  std::string content_type{};
  std::string accept = "application/json";
  std::string body{};
  Millis timeout{10'000};  // from the call to the last byte of the answer
};

// How a stream ends by itself.
struct StreamLimits {
  Millis first_byte{30'000};  // no status line within this: DeadlineExceeded
  Millis silence{90'000};     // no byte for so long: Unavailable, the connection is taken for dead
};

class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::StatusOr<Response> Do(const ClientRequest& request);

  // A GET whose answer has no end. When the status is 200, `sink` gets each piece of the body as it
  // arrives (pieces are cut anywhere; first an empty one, when the headers have come) and the
  // Response has no body; returning false ends the stream with Cancelled. Any other status is
  // answered whole, as by Do. OK when the server closed the stream in order. `request.timeout` is
  // not used.
  absl::StatusOr<Response> Stream(const ClientRequest& request,
                                  const StreamLimits& limits,
                                  const std::function<bool(std::string_view)>& sink,
                                  std::stop_token stop);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Percent-encoding of one query value or path segment.
std::string UrlEscape(std::string_view text);

}  // namespace fluxqueue::http
