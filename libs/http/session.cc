#include "libs/http/session.h"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::http::internal {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using beast::error_code;

constexpr uint32_t kHeaderLimit = 64 << 10;
constexpr size_t kReadSize = 16 << 10;  // as large as a record of TLS
// How long a connection that is refused may still send, so that the answer reaches it before the
// reset.
constexpr std::chrono::seconds kLinger{2};

std::string Text(beast::string_view text) {
  return {text.data(), text.size()};
}

Request ToRequest(bhttp::request<bhttp::string_body>&& message) {
  Request request;
  request.method = Text(message.method_string());
  const std::string target = Text(message.target());
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  for (const auto& field : message) {
    request.headers.emplace_back(Text(field.name_string()), Text(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

std::string ToText(const Response& response, bool keep_alive) {
  const std::string reason =
      Text(bhttp::obsolete_reason(bhttp::int_to_status(static_cast<unsigned>(response.status))));
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                                 response.status,
                                 reason,
                                 response.content_type,
                                 response.body.size());
  for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
  if (!keep_alive) text += "Connection: close\r\n";
  text += "\r\n";
  text += response.body;
  return text;
}

Response RefusalOf(Refusal refusal, const ServerOptions& options) {
  const auto later = [](int status, std::string why) {
    return Response{.status = status, .body = std::move(why), .headers = {{"Retry-After", "1"}}};
  };
  if (refusal == Refusal::kSource) {
    return later(429,
                 fmt::format("{} requests from this address are under way, which is as many as are "
                             "allowed; try again\n",
                             options.max_requests_per_source));
  }
  return later(503,
               fmt::format("the bodies of all requests would take more than the {} bytes that are "
                           "allowed; try again\n",
                           options.max_bodies_bytes));
}

template <typename Stream>
class SessionOn final : public Session, public std::enable_shared_from_this<SessionOn<Stream>> {
 public:
  SessionOn(SessionOwner& owner, TlsContext tls, Stream stream)
      : owner_(owner), tls_(std::move(tls)), stream_(std::move(stream)) {}
  ~SessionOn() override { owner_.Gone(this); }

  void Start() override {
    asio::post(Lowest().get_executor(), [self = this->shared_from_this()] { self->Greet(); });
  }

  void CloseWhenIdle() override {
    asio::post(Lowest().get_executor(), [self = this->shared_from_this()] {
      error_code error;
      if (self->resting_ && self->Lowest().available(error) == 0) self->Drop();
    });
  }

  void Evict(Refusal why) override {
    asio::post(Lowest().get_executor(), [self = this->shared_from_this(), why] {
      if (self->answering_) return;
      self->owner_.Refused(why);
      self->Drop();
    });
  }

  void CutOff() override {
    asio::post(Lowest().get_executor(), [self = this->shared_from_this()] {
      if (!self->IsLate(std::chrono::steady_clock::now())) return;
      if (!self->resting_) self->owner_.Refused(Refusal::kSlow);
      self->Drop();
    });
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, Socket>;

  Socket& Lowest() {
    if constexpr (kTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  // What is pending ends with an error, and with that the session.
  void Drop() {
    error_code ignored;
    Lowest().close(ignored);
  }

  void Greet() {
    if constexpr (kTls) {
      SetDeadline(owner_.options().handshake_timeout);
      stream_.async_handshake(
          asio::ssl::stream_base::server,
          [self = this->shared_from_this()](error_code error) { self->OnHandshake(error); });
    } else {
      Rest();
    }
  }

  void OnHandshake(error_code error) {
    if constexpr (kTls) {
      SSL* native = stream_.native_handle();
      if (error) {
        if (SSL_get_verify_result(native) != X509_V_OK) owner_.Refused(Refusal::kCertificate);
        return;
      }
      allowed_ = ClientIsAllowed(native, *owner_.options().tls);
    }
    Rest();
  }

  // Until the next request begins, part of which may have come with the last one.
  void Rest() {
    parser_.emplace();
    parser_->body_limit(owner_.options().max_body_bytes);
    parser_->header_limit(kHeaderLimit);
    head_seen_ = false;
    if (buffer_.size() > 0) {
      SetDeadline(owner_.options().request_timeout);
      return Parse();
    }
    if (buffer_.capacity() > 2 * kReadSize) buffer_.shrink_to_fit();
    resting_ = true;
    SetDeadline(owner_.options().idle_timeout);
    Read();
  }

  void Read() {
    stream_.async_read_some(
        buffer_.prepare(kReadSize),
        [self = this->shared_from_this()](error_code error, size_t bytes) {
          if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
            return self->Close();
          }
          if (error) return;  // reset, or closed by us
          self->buffer_.commit(bytes);
          if (self->resting_) self->SetDeadline(self->owner_.options().request_timeout);
          self->resting_ = false;
          self->Parse();
        });
  }

  void Parse() {
    while (true) {
      error_code error;
      const size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      if (error && error != bhttp::error::need_more) return OnMalformed(error);
      if (parser_->is_header_done() && !head_seen_) {
        head_seen_ = true;
        if (!allowed_ && !IsOpen(parser_->get().target())) {
          return Refuse(Refusal::kCertificate,
                        {.status = 403,
                         .body = "a client certificate is wanted here, of the authority and the "
                                 "name that are configured\n"});
        }
        const uint64_t most = owner_.options().max_body_bytes;
        const uint64_t expected = parser_->chunked() ? most : parser_->content_length().value_or(0);
        if (const auto refusal = owner_.Begin(this, static_cast<size_t>(expected))) {
          return Refuse(*refusal, RefusalOf(*refusal, owner_.options()));
        }
      }
      if (parser_->is_done()) return OnRequest();
      if (buffer_.size() == 0 || error || used == 0) return Read();
    }
  }

  bool IsOpen(beast::string_view target) const {
    const std::vector<std::string>& open = owner_.options().tls->open_paths;
    return std::find(open.begin(), open.end(), Text(target)) != open.end();
  }

  void OnMalformed(error_code error) {
    if (error == bhttp::error::body_limit) {
      return Refuse(Refusal::kTooLarge,
                    {.status = 413,
                     .body = fmt::format("the body is larger than the {} bytes that are allowed\n",
                                         owner_.options().max_body_bytes)});
    }
    if (error == bhttp::error::header_limit) {
      return Refuse(Refusal::kTooLarge,
                    {.status = 431,
                     .body = fmt::format("the headers are larger than {} bytes\n", kHeaderLimit)});
    }
    Refuse(Refusal::kMalformed,
           {.status = 400, .body = fmt::format("not a valid HTTP request: {}\n", error.message())});
  }

  void OnRequest() {
    answering_ = true;
    ClearDeadline();
    owner_.Received(this);
    keep_alive_ = parser_->keep_alive();
    owner_.Answer(
        ToRequest(parser_->release()), [weak = this->weak_from_this()](Response response) {
          const auto self = weak.lock();
          if (self == nullptr) return;
          asio::dispatch(self->Lowest().get_executor(), [self, response = std::move(response)] {
            const bool keep = self->keep_alive_ && !self->owner_.draining();
            self->Write(response, keep, /*linger=*/false);
          });
        });
  }

  void Refuse(Refusal refusal, const Response& response) {
    owner_.Refused(refusal);
    Write(response, /*keep_alive=*/false, /*linger=*/true);
  }

  void Write(const Response& response, bool keep_alive, bool linger) {
    answer_ = ToText(response, keep_alive);
    SetDeadline(owner_.options().request_timeout);
    asio::async_write(
        stream_,
        asio::buffer(answer_),
        [self = this->shared_from_this(), keep_alive, linger](error_code error, size_t) {
          self->answering_ = false;
          self->answer_ = {};
          self->owner_.End(self.get());
          if (error) return;
          if (!keep_alive) return linger ? self->Linger() : self->Close();
          self->Rest();
          if (self->owner_.stopping()) self->CloseWhenIdle();
        });
  }

  // Closing with unread input would reset the connection and could take the answer with it.
  void Linger() {
    error_code ignored;
    Lowest().shutdown(asio::socket_base::shutdown_send, ignored);
    resting_ = true;
    SetDeadline(kLinger);
    Discard();
  }

  void Discard() {
    Lowest().async_read_some(asio::buffer(scratch_),
                             [self = this->shared_from_this()](error_code error, size_t) {
                               if (!error) self->Discard();
                             });
  }

  void Close() {
    if constexpr (kTls) {
      resting_ = true;
      SetDeadline(kLinger);
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      Lowest().shutdown(asio::socket_base::shutdown_send, ignored);
    }
  }

  SessionOwner& owner_;
  const TlsContext tls_;  // outlives the stream made of it
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<bhttp::request_parser<bhttp::string_body>> parser_;
  std::string answer_;
  std::array<char, 4096> scratch_;
  bool head_seen_ = false;
  bool resting_ = false;    // what it waits for may take its time: that is no slow client
  bool answering_ = false;  // from the request's last byte until the answer is sent
  bool keep_alive_ = false;
  bool allowed_ = true;  // has shown the certificate that is wanted
};

}  // namespace

std::shared_ptr<Session> MakeSession(SessionOwner& owner, Socket socket, TlsContext tls) {
  if (tls == nullptr) {
    return std::make_shared<SessionOn<Socket>>(owner, nullptr, std::move(socket));
  }
  using TlsStream = asio::ssl::stream<Socket>;
  TlsStream stream(std::move(socket), *tls);
  return std::make_shared<SessionOn<TlsStream>>(owner, std::move(tls), std::move(stream));
}

}  // namespace fluxqueue::http::internal
