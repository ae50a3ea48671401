#include "libs/http/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/http/session.h"
#include "libs/http/tls.h"

namespace fluxqueue::http {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<Tcp, asio::io_context::executor_type>;
using SteadyClock = std::chrono::steady_clock;

// How long a connection may stay beyond its time, at most.
Millis SweepInterval(const ServerOptions& options) {
  const Millis shortest =
      std::min({options.handshake_timeout, options.request_timeout, options.idle_timeout});
  return std::clamp(shortest / 8, Millis(5), Millis(1000));
}

AsyncHandler Async(Handler handler) {
  return [handler = std::move(handler)](const Request& request, const Respond& respond) {
    respond(handler(request));
  };
}

}  // namespace

std::string_view RefusalName(Refusal refusal) {
  switch (refusal) {
    case Refusal::kConnections:
      return "connections";
    case Refusal::kEvicted:
      return "evicted";
    case Refusal::kSlow:
      return "slow";
    case Refusal::kSource:
      return "source";
    case Refusal::kMemory:
      return "memory";
    case Refusal::kTooLarge:
      return "too_large";
    case Refusal::kMalformed:
      return "malformed";
    case Refusal::kCertificate:
      return "certificate";
  }
  return "";
}

// A thread has its sessions to itself, so they need neither locks nor strands; what they share is
// the table of them. The first thread accepts, and looks for those that are late.
class Server::Impl final : public internal::SessionOwner {
 public:
  Impl(ServerOptions options, AsyncHandler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        loops_(MakeLoops(options_.threads)) {}

  absl::Status Listen();
  void Run();
  void Stop(Millis grace);
  int port() const { return port_; }

  // SessionOwner
  const ServerOptions& options() const override { return options_; }
  bool draining() const override { return draining_.load(); }
  bool stopping() const override { return stopping_.load(); }
  void Answer(const Request& request, Respond respond) override;
  std::optional<Refusal> Begin(internal::Session* session, size_t body_bytes) override;
  void Received(internal::Session* session) override;
  void End(internal::Session* session) override;
  void Refused(Refusal refusal) override;
  void Gone(internal::Session* session) override;

 private:
  struct Loop {
    asio::io_context io{1};
    size_t sessions = 0;  // guarded by mutex_
  };

  using Loops = std::vector<std::unique_ptr<Loop>>;
  static Loops MakeLoops(int count) {
    Loops loops;
    do loops.push_back(std::make_unique<Loop>());
    while (std::ssize(loops) < count);
    return loops;
  }

  // Those that wait for their clients, the longest first.
  using Waiting = std::list<internal::Session*>;

  struct Entry {
    std::weak_ptr<internal::Session> session;
    std::shared_ptr<internal::Session> kept;  // while it is answered, perhaps by another thread
    Loop* loop = nullptr;
    asio::ip::address source;
    bool under_way = false;  // counted in sources_ and bodies_bytes_
    size_t body_bytes = 0;
    Waiting* waiting = nullptr;  // the list that it is in
    Waiting::iterator place{};
  };

  void Accept();
  void Serve(internal::Socket socket, Loop& loop);
  Loop& LeastLoaded();
  // Makes room for one more; false: there is none to be had.
  bool MakeRoom();
  void Sweep();
  void RefreshTls();
  void Wait(Entry& entry, Waiting& list);
  void StopWaiting(Entry& entry);
  void Settle(Entry& entry);

  const ServerOptions options_;
  const AsyncHandler handler_;

  // Before loops_, whose destructors end the last sessions.
  std::mutex mutex_;
  std::condition_variable emptied_;
  std::unordered_map<internal::Session*, Entry> sessions_;
  Waiting fresh_;                                // no whole request yet
  Waiting served_;                               // since their last answer
  std::map<asio::ip::address, size_t> sources_;  // requests under way
  size_t bodies_bytes_ = 0;

  const Loops loops_;
  Acceptor acceptor_{loops_.front()->io};
  asio::steady_timer sweep_timer_{loops_.front()->io};
  // The first thread only.
  internal::TlsContext tls_;
  std::filesystem::file_time_type tls_written_;

  std::vector<std::jthread> threads_;
  int port_ = 0;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> stopping_ = false;
};

absl::Status Server::Impl::Listen() {
  if (options_.tls) {
    tls_written_ = internal::Written(*options_.tls);
    ASSIGN_OR_RETURN(tls_, internal::MakeTls(*options_.tls));
  }
  boost::system::error_code error;
  const auto address = asio::ip::make_address(options_.address, error);
  if (error || options_.port < 0 || options_.port > 65535) {
    return InvalidArgument("listen on {}:{}: allowed are an IP address and a port of 0 to 65535",
                           options_.address,
                           options_.port);
  }
  const Tcp::endpoint endpoint(address, static_cast<uint16_t>(options_.port));
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "listen on {}:{}: the port is in use by another process; stop that or "
                      "configure another port",
                      options_.address,
                      options_.port);
  }
  if (error) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "listen on {}:{}: {}",
                      options_.address,
                      options_.port,
                      error.message());
  }
  port_ = acceptor_.local_endpoint().port();
  return absl::OkStatus();
}

void Server::Impl::Run() {
  asio::post(loops_.front()->io, [this] {
    Accept();
    Sweep();
  });
  for (const auto& loop : loops_) {
    threads_.emplace_back([&io = loop->io] {
      const auto stay = asio::make_work_guard(io);
      io.run();
    });
  }
}

Server::Impl::Loop& Server::Impl::LeastLoaded() {
  const std::lock_guard lock(mutex_);
  return **std::min_element(loops_.begin(), loops_.end(), [](const auto& a, const auto& b) {
    return a->sessions < b->sessions;
  });
}

void Server::Impl::Accept() {
  Loop& loop = LeastLoaded();
  acceptor_.async_accept(
      loop.io, [this, &loop](boost::system::error_code error, internal::Socket socket) {
        if (stopping() || error == asio::error::operation_aborted) return;
        if (!error) {
          Serve(std::move(socket), loop);
          Accept();
          return;
        }
        // Out of descriptors, mostly: the next try comes when one may be free again.
        LogWarning("cannot accept a connection", {{"error", error.message()}});
        auto timer = std::make_shared<asio::steady_timer>(acceptor_.get_executor());
        timer->expires_after(std::chrono::milliseconds(100));
        timer->async_wait([this, timer](boost::system::error_code cancelled) {
          if (!cancelled && !stopping()) Accept();
        });
      });
}

void Server::Impl::Serve(internal::Socket socket, Loop& loop) {
  boost::system::error_code error;
  const Tcp::endpoint source = socket.remote_endpoint(error);
  if (error) return;  // gone already
  if (!MakeRoom()) return Refused(Refusal::kConnections);
  socket.set_option(Tcp::no_delay(true), error);
  RefreshTls();
  const std::shared_ptr<internal::Session> session =
      internal::MakeSession(*this, std::move(socket), tls_);
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = sessions_[session.get()];
    entry.session = session;
    entry.loop = &loop;
    entry.source = source.address();
    ++loop.sessions;
    Wait(entry, fresh_);
  }
  session->Start();
}

bool Server::Impl::MakeRoom() {
  std::shared_ptr<internal::Session> evicted;  // its last owner calls Gone: not under the lock
  {
    const std::lock_guard lock(mutex_);
    if (sessions_.size() < options_.max_connections) return true;
    Waiting& list = fresh_.empty() ? served_ : fresh_;
    if (list.empty()) return false;
    Entry& entry = sessions_.at(list.front());
    StopWaiting(entry);
    evicted = entry.session.lock();
  }
  if (evicted != nullptr) evicted->Evict(Refusal::kEvicted);
  return true;
}

void Server::Impl::Sweep() {
  const auto now = SteadyClock::now();
  std::vector<std::shared_ptr<internal::Session>> late;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [session, entry] : sessions_) {
      if (!session->IsLate(now)) continue;
      if (auto held = entry.session.lock()) late.push_back(std::move(held));
    }
  }
  for (const auto& session : late) session->CutOff();
  sweep_timer_.expires_after(SweepInterval(options_));
  sweep_timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) Sweep();
  });
}

void Server::Impl::RefreshTls() {
  if (!options_.tls) return;
  const auto written = internal::Written(*options_.tls);
  if (written == tls_written_) return;
  tls_written_ = written;
  auto context = internal::MakeTls(*options_.tls);
  if (context.ok()) {
    tls_ = *std::move(context);
    LogInfo("TLS certificate read again", {{"file", options_.tls->certificate_file}});
  } else {
    LogError("new TLS files are unusable, the old ones stay",
             {{"error", Message(context.status())}});
  }
}

void Server::Impl::Answer(const Request& request, Respond respond) {
  try {
    handler_(request, respond);
  } catch (const std::exception& e) {
    LogError("http handler failed", {{"path", request.path}, {"error", e.what()}});
    respond({.status = 500, .body = fmt::format("{}: {}\n", request.path, e.what())});
  }
}

void Server::Impl::Wait(Entry& entry, Waiting& list) {
  entry.waiting = &list;
  entry.place = list.insert(list.end(), entry.session.lock().get());
}

void Server::Impl::StopWaiting(Entry& entry) {
  if (entry.waiting == nullptr) return;
  entry.waiting->erase(entry.place);
  entry.waiting = nullptr;
}

std::optional<Refusal> Server::Impl::Begin(internal::Session* session, size_t body_bytes) {
  const std::lock_guard lock(mutex_);
  Entry& entry = sessions_.at(session);
  size_t& of_source = sources_[entry.source];
  if (of_source >= options_.max_requests_per_source) return Refusal::kSource;
  if (bodies_bytes_ + body_bytes > options_.max_bodies_bytes) {
    if (of_source == 0) sources_.erase(entry.source);
    return Refusal::kMemory;
  }
  ++of_source;
  bodies_bytes_ += body_bytes;
  entry.under_way = true;
  entry.body_bytes = body_bytes;
  return std::nullopt;
}

void Server::Impl::Received(internal::Session* session) {
  const std::lock_guard lock(mutex_);
  Entry& entry = sessions_.at(session);
  StopWaiting(entry);
  entry.kept = entry.session.lock();
}

void Server::Impl::End(internal::Session* session) {
  std::shared_ptr<internal::Session> kept;  // the last owner calls Gone: not under the lock
  const std::lock_guard lock(mutex_);
  Entry& entry = sessions_.at(session);
  kept = std::move(entry.kept);
  Settle(entry);
  if (kept != nullptr) Wait(entry, served_);
}

void Server::Impl::Refused(Refusal refusal) {
  if (options_.refused) options_.refused(refusal);
}

void Server::Impl::Gone(internal::Session* session) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  StopWaiting(found->second);
  Settle(found->second);
  --found->second.loop->sessions;
  sessions_.erase(found);
  if (sessions_.empty()) emptied_.notify_all();
}

void Server::Impl::Settle(Entry& entry) {
  if (!entry.under_way) return;
  entry.under_way = false;
  bodies_bytes_ -= entry.body_bytes;
  const auto source = sources_.find(entry.source);
  if (--source->second == 0) sources_.erase(source);
}

void Server::Impl::Stop(Millis grace) {
  if (draining_.exchange(true)) return;
  std::this_thread::sleep_for(options_.drain);
  stopping_ = true;
  asio::post(loops_.front()->io, [this] {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
  });
  // The last owner calls Gone: not under the lock.
  std::vector<std::shared_ptr<internal::Session>> alive;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [unused, entry] : sessions_) {
      if (auto held = entry.session.lock()) alive.push_back(std::move(held));
    }
  }
  for (const auto& session : alive) session->CloseWhenIdle();
  alive.clear();
  {
    std::unique_lock lock(mutex_);
    emptied_.wait_for(lock, grace, [this] { return sessions_.empty(); });
  }
  for (const auto& loop : loops_) loop->io.stop();
  threads_.clear();
  // Those that have no answer yet.
  {
    const std::lock_guard lock(mutex_);
    for (auto& [unused, entry] : sessions_) alive.push_back(std::move(entry.kept));
  }
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() {
  Stop();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, Handler handler) {
  return Start(std::move(options), Async(std::move(handler)));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, AsyncHandler handler) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  RETURN_IF_ERROR(impl->Listen());
  impl->Run();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

int Server::port() const {
  return impl_->port();
}
void Server::Stop(Millis grace) {
  impl_->Stop(grace);
}

void Router::Add(std::string method, std::string path, Handler handler) {
  Add(std::move(method), std::move(path), Async(std::move(handler)));
}

void Router::Add(std::string method, std::string path, AsyncHandler handler) {
  routes_[std::move(path)][std::move(method)] = std::move(handler);
}

AsyncHandler Router::AsHandler() const {
  return [routes = routes_](const Request& request, Respond respond) {
    const auto names = [](const auto& map) {
      std::string list;
      for (const auto& [name, unused] : map) list += (list.empty() ? "" : ", ") + name;
      return list;
    };
    const auto path = routes.find(request.path);
    if (path == routes.end()) {
      return respond(
          {.status = 404,
           .body = fmt::format("{}: not here; there are {}\n", request.path, names(routes))});
    }
    const auto method = path->second.find(request.method);
    if (method == path->second.end()) {
      const std::string allowed = names(path->second);
      return respond(
          {.status = 405,
           .body = fmt::format("{} {}: allowed are {}\n", request.method, request.path, allowed),
           .headers = {{"Allow", allowed}}});
    }
    method->second(request, std::move(respond));
  };
}

}  // namespace fluxqueue::http
