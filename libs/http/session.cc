#include "libs/http/session.h"

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::http::internal {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using beast::error_code;

constexpr uint32_t kHeaderLimit = 64 << 10;
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

template <typename Stream>
class SessionOn final : public Session, public std::enable_shared_from_this<SessionOn<Stream>> {
 public:
  SessionOn(SessionOwner& owner, std::shared_ptr<asio::ssl::context> tls, Stream stream)
      : owner_(owner), tls_(std::move(tls)), stream_(std::move(stream)) {}
  ~SessionOn() override { owner_.Gone(this); }

  void Start() override {
    asio::post(stream_.get_executor(), [self = this->shared_from_this()] { self->Greet(); });
  }

  void CloseWhenIdle() override {
    asio::post(stream_.get_executor(), [self = this->shared_from_this()] {
      if (!self->answering_) self->Lowest().close();
    });
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;

  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(stream_); }

  void Greet() {
    if constexpr (kTls) {
      Lowest().expires_after(owner_.idle_timeout());
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](error_code error) {
                                if (!error) self->Read();
                              });
    } else {
      Read();
    }
  }

  void Read() {
    if (owner_.stopping()) return Close();
    parser_.emplace();
    parser_->body_limit(owner_.max_body_bytes());
    parser_->header_limit(kHeaderLimit);
    Lowest().expires_after(owner_.idle_timeout());
    bhttp::async_read(
        stream_, buffer_, *parser_, [self = this->shared_from_this()](error_code error, size_t) {
          self->OnRead(error);
        });
  }

  void OnRead(error_code error) {
    if (error == bhttp::error::body_limit) {
      return Refuse(413,
                    fmt::format("the body is larger than the {} bytes that are allowed\n",
                                owner_.max_body_bytes()));
    }
    if (error == bhttp::error::header_limit) {
      return Refuse(431, fmt::format("the headers are larger than {} bytes\n", kHeaderLimit));
    }
    if (error == bhttp::error::end_of_stream || error == bhttp::error::partial_message) {
      return Close();
    }
    if (error && error.category() == bhttp::make_error_code(bhttp::error::bad_method).category()) {
      return Refuse(400, fmt::format("not a valid HTTP request: {}\n", error.message()));
    }
    if (error) return;  // reset, silent for too long, or closed by us
    answering_ = true;
    const bool keep_alive = parser_->keep_alive();
    const Response response = owner_.Answer(ToRequest(parser_->release()));
    Write(response, keep_alive && !owner_.stopping(), /*linger=*/false);
  }

  void Refuse(int status, std::string why) {
    Write({.status = status, .body = std::move(why)}, /*keep_alive=*/false, /*linger=*/true);
  }

  void Write(const Response& response, bool keep_alive, bool linger) {
    answer_ = {};
    answer_.version(11);
    answer_.result(static_cast<unsigned>(response.status));
    answer_.set(bhttp::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) answer_.set(name, value);
    answer_.body() = response.body;
    answer_.keep_alive(keep_alive);
    answer_.prepare_payload();
    Lowest().expires_after(owner_.idle_timeout());
    bhttp::async_write(
        stream_,
        answer_,
        [self = this->shared_from_this(), keep_alive, linger](error_code error, size_t) {
          self->answering_ = false;
          if (error) return;
          if (keep_alive) return self->Read();
          linger ? self->Linger() : self->Close();
        });
  }

  // Closing with unread input would reset the connection and could take the answer with it.
  void Linger() {
    error_code ignored;
    Lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    Lowest().expires_after(kLinger);
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
      Lowest().expires_after(kLinger);
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      Lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    }
  }

  SessionOwner& owner_;
  const std::shared_ptr<asio::ssl::context> tls_;  // outlives the stream made of it
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<bhttp::request_parser<bhttp::string_body>> parser_;
  bhttp::response<bhttp::string_body> answer_;
  std::array<char, 4096> scratch_;
  bool answering_ = false;
};

}  // namespace

std::shared_ptr<Session> MakeSession(SessionOwner& owner,
                                     asio::ip::tcp::socket socket,
                                     std::shared_ptr<asio::ssl::context> tls) {
  if (tls == nullptr) {
    return std::make_shared<SessionOn<beast::tcp_stream>>(
        owner, nullptr, beast::tcp_stream(std::move(socket)));
  }
  using TlsStream = beast::ssl_stream<beast::tcp_stream>;
  TlsStream stream(beast::tcp_stream(std::move(socket)), *tls);
  return std::make_shared<SessionOn<TlsStream>>(owner, std::move(tls), std::move(stream));
}

}  // namespace fluxqueue::http::internal
