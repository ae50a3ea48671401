#include "libs/http/client.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/base/failure_point.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::http {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A stream's answer with an error status is kept up to this much.
constexpr size_t kErrorBodyLimit = 1 << 20;
// More idle connections than this are closed.
constexpr size_t kIdleLimit = 64;

struct EasyDelete {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDelete {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListDelete {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDelete>;
using Multi = std::unique_ptr<CURLM, MultiDelete>;
using HeaderList = std::unique_ptr<curl_slist, ListDelete>;

void Append(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  CHECK(longer != nullptr, "out of memory");
  static_cast<void>(list.release());  // it is part of `longer` now
  list.reset(longer);
}

void SetBlob(CURL* easy, CURLoption option, const std::string& text) {
  if (text.empty()) return;
  curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
  curl_easy_setopt(easy, option, &blob);
}

// One request under way, as libcurl's callbacks see it.
struct Exchange {
  CURL* easy = nullptr;
  Response response;
  const std::function<bool(std::string_view)>* sink = nullptr;  // streams only
  SteadyClock::time_point last_byte;
  bool began = false;  // a status line has come
};

long Status(CURL* easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* exchange = static_cast<Exchange*>(user);
  exchange->began = true;
  exchange->last_byte = SteadyClock::now();
  std::string_view line(data, size * count);
  if (line == "\r\n" && exchange->sink != nullptr && Status(exchange->easy) == 200) {
    return (*exchange->sink)({}) ? line.size() : 0;
  }
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    while (!value.empty() && (value.back() == '\r' || value.back() == '\n')) value.remove_suffix(1);
    exchange->response.headers.emplace_back(line.substr(0, colon), value);
  }
  return size * count;
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* exchange = static_cast<Exchange*>(user);
  const std::string_view piece(data, size * count);
  if (exchange->sink == nullptr) {
    exchange->response.body += piece;
    return piece.size();
  }
  if (Status(exchange->easy) == 200) {
    const bool more = (*exchange->sink)(piece);
    exchange->last_byte =
        SteadyClock::now();  // a sink that takes its time is not the server's silence
    return more ? piece.size() : 0;
  }
  exchange->last_byte = SteadyClock::now();
  if (exchange->response.body.size() < kErrorBodyLimit) exchange->response.body += piece;
  return piece.size();
}

}  // namespace

class Client::Impl {
 public:
  explicit Impl(ClientOptions options) : options_(std::move(options)) {
    static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
    CHECK(global == CURLE_OK, "libcurl: {}", curl_easy_strerror(global));
  }

  absl::StatusOr<Response> Do(const ClientRequest& request) {
    Call call(this, request);
    curl_easy_setopt(call.easy(), CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    const CURLcode code = curl_easy_perform(call.easy());
    if (code != CURLE_OK) return Error(call.easy(), request, code);
    return call.TakeResponse();
  }

  absl::StatusOr<Response> Stream(const ClientRequest& request,
                                  const StreamLimits& limits,
                                  const std::function<bool(std::string_view)>& sink,
                                  std::stop_token stop);

 private:
  // One request on an idle handle (with its open connection) or a new one, given back at the end.
  class Call {
   public:
    Call(Impl* impl, const ClientRequest& request) : impl_(impl), easy_(impl->Take()) {
      exchange_.easy = easy_.get();
      impl_->Prepare(easy_.get(), request, &url_, &headers_);
      curl_easy_setopt(easy_.get(), CURLOPT_HEADERFUNCTION, &OnHeader);
      curl_easy_setopt(easy_.get(), CURLOPT_HEADERDATA, &exchange_);
      curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, &OnBody);
      curl_easy_setopt(easy_.get(), CURLOPT_WRITEDATA, &exchange_);
    }
    ~Call() { impl_->Give(std::move(easy_)); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    CURL* easy() { return easy_.get(); }
    Exchange& exchange() { return exchange_; }
    Response TakeResponse() {
      exchange_.response.status = static_cast<int>(Status(easy_.get()));
      exchange_.response.content_type = FindHeader(exchange_.response.headers, "Content-Type");
      return std::move(exchange_.response);
    }

   private:
    Impl* impl_;
    Easy easy_;
    Exchange exchange_;
    std::string url_;
    HeaderList headers_;
  };

  Easy Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Easy easy = std::move(idle_.back());
        idle_.pop_back();
        return easy;
      }
    }
    Easy easy(curl_easy_init());
    CHECK(easy != nullptr, "libcurl: out of memory");
    return easy;
  }

  void Give(Easy easy) {
    curl_easy_reset(easy.get());  // keeps the connection, the TLS session and the looked-up name
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleLimit) idle_.push_back(std::move(easy));
  }

  void Prepare(CURL* easy, const ClientRequest& request, std::string* url, HeaderList* headers);
  absl::Status Error(CURL* easy, const ClientRequest& request, CURLcode code) const;
  absl::Status Overdue(const ClientRequest& request,
                       const StreamLimits& limits,
                       const Exchange& exchange) const;

  const ClientOptions options_;
  std::mutex mutex_;
  std::vector<Easy> idle_;
};

void Client::Impl::Prepare(CURL* easy,
                           const ClientRequest& request,
                           std::string* url,
                           HeaderList* headers) {
  *url = options_.base_url + request.target;
  Append(*headers, "Accept: " + request.accept);
  Append(*headers, "Expect:");
  if (!request.content_type.empty()) Append(*headers, "Content-Type: " + request.content_type);
  const std::string token = options_.bearer_token ? options_.bearer_token() : "";
  if (!token.empty()) Append(*headers, "Authorization: Bearer " + token);
  curl_easy_setopt(easy, CURLOPT_URL, url->c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers->get());
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options_.user_agent.c_str());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 20L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
  curl_easy_setopt(
      easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
  SetBlob(easy, CURLOPT_CAINFO_BLOB, options_.tls.ca);
  SetBlob(easy, CURLOPT_SSLCERT_BLOB, options_.tls.certificate);
  SetBlob(easy, CURLOPT_SSLKEY_BLOB, options_.tls.key);
  if (options_.tls.insecure) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (request.method == "GET") return;
  if (request.method == "POST" || !request.body.empty()) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(
        easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

absl::Status Client::Impl::Error(CURL* easy, const ClientRequest& request, CURLcode code) const {
  const std::string what = fmt::format(
      "{} {}{}: {}", request.method, options_.base_url, request.target, curl_easy_strerror(code));
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return InvalidArgument("{}; a URL begins with http:// or https://", what);
    case CURLE_WRITE_ERROR:
      return absl::CancelledError(ToAbsl(what));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
      return Unavailable("{}; check the certificate authority and the client's certificate", what);
    case CURLE_OPERATION_TIMEDOUT: {
      curl_off_t sent_at = 0;
      curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &sent_at);
      if (sent_at == 0) return Unavailable("{} while connecting", what);
      return absl::DeadlineExceededError(ToAbsl(what));
    }
    default:
      return Unavailable("{}", what);
  }
}

absl::Status Client::Impl::Overdue(const ClientRequest& request,
                                   const StreamLimits& limits,
                                   const Exchange& exchange) const {
  const auto silent = SteadyClock::now() - exchange.last_byte;
  if (exchange.began && silent > limits.silence) {
    return Unavailable("stream {}{}: silent for {} s, taken for dead",
                       options_.base_url,
                       request.target,
                       limits.silence.count() / 1000);
  }
  if (!exchange.began && silent > limits.first_byte) {
    return MakeStatus(absl::StatusCode::kDeadlineExceeded,
                      "stream {}{}: no answer within {} s",
                      options_.base_url,
                      request.target,
                      limits.first_byte.count() / 1000);
  }
  return absl::OkStatus();
}

absl::StatusOr<Response> Client::Impl::Stream(const ClientRequest& request,
                                              const StreamLimits& limits,
                                              const std::function<bool(std::string_view)>& sink,
                                              std::stop_token stop) {
  // A multi handle, because only its poll can be woken from another thread. It owns the stream's
  // connection.
  const Multi multi(curl_multi_init());
  CHECK(multi != nullptr, "libcurl: out of memory");
  Call call(this, request);
  call.exchange().sink = &sink;
  call.exchange().last_byte = SteadyClock::now();
  curl_multi_add_handle(multi.get(), call.easy());
  struct Remove {
    CURLM* multi;
    CURL* easy;
    ~Remove() { curl_multi_remove_handle(multi, easy); }
  } const remove{multi.get(), call.easy()};
  const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi.get()); });
  while (true) {
    if (stop.stop_requested()) return absl::CancelledError("stop requested");
    int running = 0;
    curl_multi_perform(multi.get(), &running);
    int queued = 0;
    if (const CURLMsg* message = curl_multi_info_read(multi.get(), &queued); message != nullptr) {
      if (message->data.result != CURLE_OK) {
        return Error(call.easy(), request, message->data.result);
      }
      return call.TakeResponse();
    }
    RETURN_IF_ERROR(Overdue(request, limits, call.exchange()));
    const auto limit = std::min(limits.silence, limits.first_byte);
    const auto nap = std::clamp(limit / 4, Millis(10), Millis(1'000));
    curl_multi_poll(multi.get(), nullptr, 0, static_cast<int>(nap.count()), nullptr);
  }
}

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Client::~Client() = default;

absl::StatusOr<Response> Client::Do(const ClientRequest& request) {
  if (request.method == "GET") return impl_->Do(request);
  FailurePoint("request.before");
  auto response = impl_->Do(request);
  FailurePoint("request.after");
  return response;
}

absl::StatusOr<Response> Client::Stream(const ClientRequest& request,
                                        const StreamLimits& limits,
                                        const std::function<bool(std::string_view)>& sink,
                                        std::stop_token stop) {
  return impl_->Stream(request, limits, sink, std::move(stop));
}

std::string UrlEscape(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

}  // namespace fluxqueue::http
