#include "libs/testing/tcp_proxy.h"

#include <array>
#include <cerrno>
#include <cstddef>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libs/base/check.h"

namespace fluxqueue::testing {
namespace {

constexpr std::chrono::milliseconds kTurn{10};
constexpr int kBacklog = 128;
// Where the receiver takes nothing, the sender is to notice.
constexpr size_t kMostUnderWay = 64;

sockaddr_in Here(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool WouldBlock() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// Else each small message would wait for the one before it to be acknowledged.
void SendAtOnce(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

TcpProxy::TcpProxy(uint16_t server_port) : server_port_(server_port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Here(0);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  CHECK(::bind(listener_, generic, size) == 0 && ::listen(listener_, kBacklog) == 0 &&
            ::getsockname(listener_, generic, &size) == 0,
        "no port for the proxy");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

TcpProxy::~TcpProxy() {
  thread_.request_stop();
  thread_.join();
  CloseAll(false);
  ::close(listener_);
}

void TcpProxy::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (cut_.exchange(false)) CloseAll(true);
    if (silent_) {
      std::this_thread::sleep_for(kTurn);
      continue;
    }
    std::vector<pollfd> ready = {{listener_, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      for (const Way* way : {&pair.there, &pair.back}) {
        const bool full = way->ended || way->under_way.size() >= kMostUnderWay;
        ready.push_back({full ? -1 : way->from, POLLIN, 0});
      }
    }
    ::poll(ready.data(), ready.size(), static_cast<int>(kTurn.count()));
    // Told while it waited: what has come meanwhile stays.
    if (silent_) continue;
    PassOn(ready);
    if (ready[0].revents != 0) Accept();
  }
}

void TcpProxy::Accept() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Here(server_port_);
  if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    SendAtOnce(client);
    SendAtOnce(server);
    pairs_.push_back({.there = {client, server}, .back = {server, client}});
    return;
  }
  ::close(client);
  ::close(server);
}

void TcpProxy::Receive(Way* way) const {
  std::array<char, 65536> buffer{};
  const ssize_t size = ::recv(way->from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0 && WouldBlock()) return;
  if (size <= 0) {
    way->ended = true;
    return;
  }
  way->under_way.push_back({Clock::now() + std::chrono::milliseconds(delay_ms_),
                            std::string(buffer.data(), static_cast<size_t>(size))});
}

// False: that was the end.
bool TcpProxy::Deliver(Way* way) {
  while (!way->under_way.empty() && way->under_way.front().due <= Clock::now()) {
    std::string& rest = way->under_way.front().rest;
    const ssize_t sent = ::send(way->to, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return WouldBlock();
    rest.erase(0, static_cast<size_t>(sent));
    if (rest.empty()) way->under_way.pop_front();
  }
  return !(way->ended && way->under_way.empty());
}

void TcpProxy::PassOn(const std::vector<pollfd>& ready) {
  size_t at = 1;  // behind the listener
  std::erase_if(pairs_, [&](Pair& pair) {
    if (ready[at++].revents != 0) Receive(&pair.there);
    if (ready[at++].revents != 0) Receive(&pair.back);
    if (Deliver(&pair.there) && Deliver(&pair.back)) return false;
    ::close(pair.there.from);
    ::close(pair.there.to);
    return true;
  });
}

void TcpProxy::CloseAll(bool reset) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  for (const Pair& pair : pairs_) {
    for (const int end : {pair.there.from, pair.there.to}) {
      if (reset) ::setsockopt(end, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      ::close(end);
    }
  }
  pairs_.clear();
}

}  // namespace fluxqueue::testing
