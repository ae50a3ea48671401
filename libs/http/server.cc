#include "libs/http/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <fmt/format.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/http/session.h"

namespace fluxqueue::http {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;

absl::StatusOr<std::shared_ptr<asio::ssl::context>> MakeTls(const ServerTls& files) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  boost::system::error_code error;
  context->use_certificate_chain_file(files.certificate_file, error);
  if (error) {
    return InvalidArgument("TLS certificate {}: {}; it must be a readable PEM file",
                           files.certificate_file,
                           error.message());
  }
  context->use_private_key_file(files.key_file, asio::ssl::context::pem, error);
  if (error) {
    return InvalidArgument("TLS key {}: {}; it must be the PEM key of {}",
                           files.key_file,
                           error.message(),
                           files.certificate_file);
  }
  return context;
}

// When either file was last written; the clock's epoch if that cannot be told.
std::filesystem::file_time_type Written(const ServerTls& files) {
  std::error_code error;
  const auto certificate = std::filesystem::last_write_time(files.certificate_file, error);
  if (error) return {};
  const auto key = std::filesystem::last_write_time(files.key_file, error);
  return error ? std::filesystem::file_time_type{} : std::max(certificate, key);
}

}  // namespace

// Accepts on one strand; each session runs on its own. Sessions are held by their pending
// operations; the server knows them only to close them.
class Server::Impl final : public internal::SessionOwner {
 public:
  Impl(ServerOptions options, Handler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        io_(options_.threads),
        acceptor_(asio::make_strand(io_)) {}

  absl::Status Listen();
  void Run();
  void Stop(Millis grace);
  int port() const { return port_; }

  // SessionOwner
  Response Answer(const Request& request) override;
  bool stopping() const override { return stopping_.load(); }
  size_t max_body_bytes() const override { return options_.max_body_bytes; }
  Millis idle_timeout() const override { return options_.idle_timeout; }
  void Gone(internal::Session* session) override;

 private:
  void Accept();
  void Serve(Tcp::socket socket);
  void RefreshTls();

  const ServerOptions options_;
  const Handler handler_;
  // Before io_, whose destructor ends the last sessions.
  std::mutex mutex_;
  std::condition_variable emptied_;
  std::unordered_map<internal::Session*, std::weak_ptr<internal::Session>> sessions_;

  asio::io_context io_;
  Tcp::acceptor acceptor_;
  std::shared_ptr<asio::ssl::context> tls_;  // the acceptor's strand only
  std::filesystem::file_time_type tls_written_;
  std::vector<std::jthread> threads_;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
};

absl::Status Server::Impl::Listen() {
  if (options_.tls) {
    tls_written_ = Written(*options_.tls);
    ASSIGN_OR_RETURN(tls_, MakeTls(*options_.tls));
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
  asio::post(acceptor_.get_executor(), [this] { Accept(); });
  for (int i = 0; i < std::max(1, options_.threads); ++i) {
    threads_.emplace_back([this] { io_.run(); });
  }
}

void Server::Impl::Accept() {
  acceptor_.async_accept(
      asio::make_strand(io_), [this](boost::system::error_code error, Tcp::socket socket) {
        if (stopping() || error == asio::error::operation_aborted) return;
        if (!error) {
          Serve(std::move(socket));
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

void Server::Impl::Serve(Tcp::socket socket) {
  boost::system::error_code ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  RefreshTls();
  const std::shared_ptr<internal::Session> session =
      internal::MakeSession(*this, std::move(socket), tls_);
  {
    const std::lock_guard lock(mutex_);
    sessions_.emplace(session.get(), session);
  }
  session->Start();
}

void Server::Impl::RefreshTls() {
  if (!options_.tls) return;
  const auto written = Written(*options_.tls);
  if (written == tls_written_) return;
  tls_written_ = written;
  auto context = MakeTls(*options_.tls);
  if (context.ok()) {
    tls_ = *std::move(context);
    LogInfo("TLS certificate read again", {{"file", options_.tls->certificate_file}});
  } else {
    LogError("new TLS files are unusable, the old ones stay",
             {{"error", Message(context.status())}});
  }
}

Response Server::Impl::Answer(const Request& request) {
  try {
    return handler_(request);
  } catch (const std::exception& e) {
    LogError("http handler failed", {{"path", request.path}, {"error", e.what()}});
    return {.status = 500, .body = fmt::format("{}: {}\n", request.path, e.what())};
  }
}

void Server::Impl::Gone(internal::Session* session) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(session);
  if (sessions_.empty()) emptied_.notify_all();
}

void Server::Impl::Stop(Millis grace) {
  if (stopping_.exchange(true)) return;
  asio::post(acceptor_.get_executor(), [this] {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
  });
  std::vector<std::shared_ptr<internal::Session>>
      alive;  // the last owner calls Gone: not under the lock
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [unused, session] : sessions_) {
      if (auto held = session.lock()) alive.push_back(std::move(held));
    }
  }
  for (const auto& session : alive) session->CloseWhenIdle();
  alive.clear();
  {
    std::unique_lock lock(mutex_);
    emptied_.wait_for(lock, grace, [this] { return sessions_.empty(); });
  }
  io_.stop();
  threads_.clear();
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() {
  Stop();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, Handler handler) {
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
  routes_[std::move(path)][std::move(method)] = std::move(handler);
}

Handler Router::AsHandler() const {
  return [routes = routes_](const Request& request) -> Response {
    const auto names = [](const auto& map) {
      std::string list;
      for (const auto& [name, unused] : map) list += (list.empty() ? "" : ", ") + name;
      return list;
    };
    const auto path = routes.find(request.path);
    if (path == routes.end()) {
      return {.status = 404,
              .body = fmt::format("{}: not here; there are {}\n", request.path, names(routes))};
    }
    const auto method = path->second.find(request.method);
    if (method == path->second.end()) {
      const std::string allowed = names(path->second);
      return {.status = 405,
              .body = fmt::format("{} {}: allowed are {}\n", request.method, request.path, allowed),
              .headers = {{"Allow", allowed}}};
    }
    return method->second(request);
  };
}

}  // namespace fluxqueue::http
