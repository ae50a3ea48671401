#include "libs/testing/tcp_proxy.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libs/base/check.h"

namespace fluxqueue::testing {
namespace {

constexpr std::chrono::milliseconds kTurn{10};

sockaddr_in Here(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool SendAll(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(to, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// What has come; false: that was the end.
bool PassOnce(int from, int to) {
  pollfd ready{from, POLLIN, 0};
  if (::poll(&ready, 1, 0) <= 0) return true;
  std::array<char, 65536> buffer{};
  const ssize_t size = ::recv(from, buffer.data(), buffer.size(), 0);
  return size > 0 && SendAll(to, {buffer.data(), static_cast<size_t>(size)});
}

}  // namespace

TcpProxy::TcpProxy(uint16_t server_port) : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Here(0);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  CHECK(::bind(listener_, generic, size) == 0 && ::listen(listener_, 16) == 0 &&
            ::getsockname(listener_, generic, &size) == 0,
        "no port for the proxy");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

TcpProxy::~TcpProxy() {
  thread_.request_stop();
  thread_.join();
  CloseAll();
  ::close(listener_);
}

void TcpProxy::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (silent_) {
      std::this_thread::sleep_for(kTurn);
      continue;
    }
    std::vector<pollfd> ready = {{listener_, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      ready.push_back({pair.client, POLLIN, 0});
      ready.push_back({pair.server, POLLIN, 0});
    }
    ::poll(ready.data(), ready.size(), static_cast<int>(kTurn.count()));
    // Told while it waited: what has come meanwhile stays.
    if (silent_) continue;
    PassOn();
    if ((ready[0].revents & POLLIN) != 0) Accept();
  }
}

void TcpProxy::Accept() {
  const Pair pair{::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC),
                  ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const sockaddr_in server = Here(server_port_);
  if (::connect(pair.server, reinterpret_cast<const sockaddr*>(&server), sizeof(server)) == 0) {
    pairs_.push_back(pair);
    return;
  }
  ::close(pair.client);
  ::close(pair.server);
}

void TcpProxy::PassOn() {
  std::erase_if(pairs_, [](const Pair& pair) {
    if (PassOnce(pair.client, pair.server) && PassOnce(pair.server, pair.client)) return false;
    ::close(pair.client);
    ::close(pair.server);
    return true;
  });
}

void TcpProxy::CloseAll() {
  for (const Pair& pair : pairs_) {
    ::close(pair.client);
    ::close(pair.server);
  }
}

}  // namespace fluxqueue::testing
