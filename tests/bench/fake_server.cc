#include "tests/bench/fake_server.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using beast::error_code;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kMaxBody = 4 << 20;
// Jobs made in one turn, and how much a watch may be behind before more are made.
constexpr size_t kSlice = 200;
constexpr size_t kMaxBehind = 4 << 20;
constexpr std::chrono::milliseconds kFeedInterval{5};
// Clients take a watch that is silent for 90 s for dead.
constexpr std::chrono::seconds kBookmarks{20};
constexpr std::chrono::hours kLongest{1};

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

template <typename Number>
Number ToNumber(std::string_view text, Number fallback) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : fallback;
}

using Query = std::map<std::string, std::string, std::less<>>;

std::string Value(const Query& query, std::string_view key) {
  const auto found = query.find(key);
  return found == query.end() ? std::string() : found->second;
}

std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(&text[i + 1], &text[i] + 3, code, 16).ec == std::errc()) {
      plain += static_cast<char>(code);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// One connection that asks, until it closes or becomes a watch.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(FakeServer& server, tcp::socket socket) : server_(server), socket_(std::move(socket)) {}

  void Read() {
    parser_.emplace();
    parser_->body_limit(kMaxBody);
    http::async_read(
        socket_, buffer_, *parser_, [self = shared_from_this()](error_code error, size_t) {
          if (!error) self->Answered();
        });
  }

 private:
  void Answered() {
    auto message = parser_->release();
    FakeServer::Incoming request;
    request.method = std::string(message.method_string().data(), message.method_string().size());
    const std::string target(message.target().data(), message.target().size());
    const size_t mark = target.find('?');
    request.path = target.substr(0, mark);
    if (mark != std::string::npos) request.query = target.substr(mark + 1);
    request.body = std::move(message.body());
    if (FakeServer::IsWatch(request)) return server_.Watch(request, std::move(socket_));
    Answer answer = server_.Serve(request);
    out_ = fmt::format(
        "HTTP/1.1 {} -\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        answer.status,
        answer.body.size(),
        answer.body);
    asio::async_write(
        socket_, asio::buffer(out_), [self = shared_from_this()](error_code error, size_t) {
          if (!error) self->Read();
        });
  }

  FakeServer& server_;
  tcp::socket socket_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::string out_;
};

}  // namespace

ApiPath ParseApiPath(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(path.front() == '/' ? 1 : 0);
    const size_t end = std::min(path.find('/'), path.size());
    parts.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  size_t at = 0;
  if (!parts.empty() && parts[0] == "api") at = 2;
  if (!parts.empty() && parts[0] == "apis") at = 3;
  if (at == 0 || parts.size() <= at) return {};
  if (parts[at] == "namespaces" && parts.size() > at + 2) at += 2;
  const auto part = [&](size_t index) {
    return index < parts.size() ? parts[index] : std::string();
  };
  return {part(at), part(at + 1), part(at + 2)};
}

Query ParseQuery(std::string_view query) {
  Query values;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    values[Unescape(pair.substr(0, equals))] =
        Unescape(pair.substr(std::min(equals + 1, pair.size())));
  }
  return values;
}

// The only selector that the services have and held objects do not meet: what bypasses the queue.
Selected ParseSelected(const std::string& path, const Query& query) {
  const std::string labels = Value(query, "labelSelector");
  Selected selected{.plural = ParseApiPath(path).plural};
  const bool may_be_held = selected.plural == "jobs" || selected.plural == "pods";
  selected.none = may_be_held && labels.find("!fluxqueue.io/held") != std::string::npos;
  return selected;
}

// ----------------------------------------------------------------------------------------------
// watches

WatchStream::WatchStream(tcp::socket socket, Selected selected, SteadyClock::time_point end)
    : socket_(std::move(socket)), selected_(std::move(selected)), end_(end) {}

void WatchStream::Begin(const std::string& lines) {
  head_ = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  waiting_ = lines;
  ScheduleFlush();
}

void WatchStream::Push(std::string_view lines) {
  if (gone_ || finishing_) return;
  waiting_ += lines;
  ScheduleFlush();
}

void WatchStream::Finish() {
  finishing_ = true;
  ScheduleFlush();
}

// In a turn of its own, so that what this turn still brings goes out with it.
void WatchStream::ScheduleFlush() {
  if (busy_ || gone_) return;
  busy_ = true;
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->Flush(); });
}

void WatchStream::Flush() {
  sending_ = std::exchange(head_, {});
  if (!waiting_.empty()) {
    sending_ += fmt::format("{:x}\r\n{}\r\n", waiting_.size(), waiting_);
    waiting_.clear();
  }
  const bool last = finishing_;
  if (last) sending_ += "0\r\n\r\n";
  asio::async_write(
      socket_, asio::buffer(sending_), [self = shared_from_this(), last](error_code error, size_t) {
        self->busy_ = false;
        self->gone_ = last || error;
        if (!self->gone_ && (!self->waiting_.empty() || self->finishing_)) {
          self->ScheduleFlush();
        }
      });
}

// ----------------------------------------------------------------------------------------------
// the server

FakeServer::FakeServer(asio::io_context& io, int nodes)
    : io_(io),
      acceptor_(io),
      feed_timer_(io),
      end_timer_(io),
      bookmark_timer_(io),
      cluster_(nodes, NowMs(), [this](std::string_view plural, std::string_view line) {
        Tell(plural, line);
      }) {}

absl::Status FakeServer::Listen(uint16_t port) {
  const tcp::endpoint endpoint(asio::ip::make_address("127.0.0.1"), port);
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition, "listen on 127.0.0.1:{}: {}", port, error.message());
  }
  Accept();
  SayBookmarks();
  return absl::OkStatus();
}

void FakeServer::Accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (!error) {
      socket.set_option(tcp::no_delay(true), error);
      std::make_shared<Session>(*this, std::move(socket))->Read();
    }
    Accept();
  });
}

bool FakeServer::IsWatch(const Incoming& request) {
  return request.method == "GET" && Value(ParseQuery(request.query), "watch") == "true";
}

void FakeServer::Watch(const Incoming& request, tcp::socket socket) {
  const Query query = ParseQuery(request.query);
  const auto seconds = ToNumber<int64_t>(Value(query, "timeoutSeconds"), 0);
  const auto longest = seconds > 0 ? std::chrono::seconds(seconds) : std::chrono::seconds(kLongest);
  const Selected selected = ParseSelected(request.path, query);
  const auto version = ToNumber<uint64_t>(Value(query, "resourceVersion"), 0);
  watches_.push_back(
      std::make_shared<WatchStream>(std::move(socket), selected, SteadyClock::now() + longest));
  watches_.back()->Begin(selected.none ? "" : cluster_.NewerThan(selected.plural, version));
}

void FakeServer::Tell(std::string_view plural, std::string_view line) {
  for (const auto& watch : watches_) {
    if (watch->Shows(plural)) watch->Push(line);
  }
}

void FakeServer::SayBookmarks() {
  const auto now = SteadyClock::now();
  for (const auto& watch : watches_) {
    watch->Push(cluster_.Bookmark(watch->plural()));
    if (watch->Over(now)) watch->Finish();
  }
  watches_.remove_if([](const auto& watch) { return watch->gone(); });
  bookmark_timer_.expires_after(kBookmarks);
  bookmark_timer_.async_wait([this](error_code error) {
    if (!error) SayBookmarks();
  });
}

Answer FakeServer::Serve(const Incoming& request) {
  if (request.path.starts_with("/bench/")) return Control(request);
  if (request.path == "/readyz") return {200, "ok"};
  Answer answer = Api(request);
  ScheduleEnds();
  return answer;
}

Answer FakeServer::Api(const Incoming& request) {
  const ApiPath path = ParseApiPath(request.path);
  if (path.plural.empty()) return {404, "{}"};
  if (request.method == "GET" && path.name.empty()) {
    const Query query = ParseQuery(request.query);
    if (ParseSelected(request.path, query).none) return cluster_.EmptyList();
    return cluster_.List(
        path.plural, Value(query, "continue"), ToNumber<size_t>(Value(query, "limit"), 500));
  }
  if (request.method == "GET") return cluster_.Get(path.plural, path.name);
  if (request.method == "POST" && path.subresource == "binding") {
    return cluster_.Bind(path.name, request.body, NowMs());
  }
  if (request.method == "POST") return cluster_.Create(path.plural, request.body);
  if (request.method == "PATCH") return cluster_.Patch(path.plural, path.name, request.body);
  return {405, R"({"kind":"Status","reason":"MethodNotAllowed","code":405})"};
}

Answer FakeServer::Control(const Incoming& request) {
  const Query query = ParseQuery(request.query);
  if (request.path == "/bench/submit" && request.method == "POST") {
    Feed feed;
    feed.shape = {Value(query, "prefix"),
                  ToNumber(Value(query, "cpu"), 100),
                  ToNumber<int64_t>(Value(query, "run"), 0)};
    feed.count = ToNumber<size_t>(Value(query, "count"), 0);
    feed.rate = static_cast<double>(ToNumber<int64_t>(Value(query, "rate"), 0));
    feed.begin = SteadyClock::now();
    feeds_.push_back(std::move(feed));
    ScheduleFeeds();
    return {200, "{}"};
  }
  if (request.path == "/bench/state") {
    return {200,
            fmt::format(R"({{"jobs":{},"bound":{},"complete":{},"fluxjobs":{}}})",
                        cluster_.jobs(),
                        cluster_.bound(),
                        cluster_.complete(),
                        cluster_.flux_jobs())};
  }
  if (request.path == "/bench/jobs") {
    std::string lines;
    for (const JobTimes& job : cluster_.Times(Value(query, "prefix"))) {
      lines += fmt::format("{} {} {} {}\n", job.uid, job.created, job.bound, job.ended);
    }
    return {200, std::move(lines)};
  }
  return {404, "{}"};
}

bool FakeServer::WatchesAreBehind() const {
  return std::any_of(watches_.begin(), watches_.end(), [](const auto& watch) {
    return !watch->gone() && watch->waiting() > kMaxBehind;
  });
}

void FakeServer::ScheduleFeeds() {
  if (feeding_ || feeds_.empty()) return;
  feeding_ = true;
  feed_timer_.expires_after(kFeedInterval);
  feed_timer_.async_wait([this](error_code error) {
    feeding_ = false;
    if (!error) RunFeeds();
  });
}

void FakeServer::ScheduleEnds() {
  const std::optional<int64_t> next = cluster_.NextEnd();
  if (ending_ || !next.has_value()) return;
  ending_ = true;
  end_timer_.expires_after(std::chrono::milliseconds(std::max<int64_t>(0, *next - NowMs())));
  end_timer_.async_wait([this](error_code error) {
    ending_ = false;
    if (error) return;
    cluster_.Advance(NowMs());
    ScheduleEnds();
  });
}

void FakeServer::RunFeeds() {
  Feed& feed = feeds_.front();
  size_t due = feed.count;
  if (feed.rate > 0) {
    const std::chrono::duration<double> passed = SteadyClock::now() - feed.begin;
    due = std::min(feed.count, static_cast<size_t>(passed.count() * feed.rate));
  }
  for (size_t made = 0; feed.done < due && made < kSlice && !WatchesAreBehind(); ++made) {
    cluster_.Submit(feed.shape, NowMs());
    ++feed.done;
  }
  if (feed.done == feed.count) feeds_.pop_front();
  ScheduleFeeds();
}

}  // namespace fluxqueue::bench
