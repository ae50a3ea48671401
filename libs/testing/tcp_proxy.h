// A way between clients and a server on this machine, on which things go wrong: it falls silent
// (connections stay, what is sent is acknowledged by the kernel, and nothing arrives any more: so
// does a host that vanishes behind a network which still answers for it, or a server that is
// stopped), it is slow, it resets connections, it leads to another server. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>

namespace fluxqueue::testing {

class TcpProxy {
 public:
  // To 127.0.0.1. Aborts the test program where no port can be had.
  explicit TcpProxy(uint16_t server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  uint16_t port() const { return port_; }
  // From now on nothing is passed on, either way.
  void FallSilent() { silent_ = true; }
  // What has waited goes on.
  void Speak() { silent_ = false; }
  // What is sent from now on arrives so much later, either way.
  void Delay(std::chrono::milliseconds by) { delay_ms_ = by.count(); }
  // Resets all connections that there are.
  void Cut() { cut_ = true; }
  // The server of connections to come.
  void LeadTo(uint16_t server_port) { server_port_ = server_port; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Parcel {
    Clock::time_point due;
    std::string rest;
  };
  // One direction of a connection.
  struct Way {
    int from;
    int to;
    std::deque<Parcel> under_way{};
    bool ended = false;  // nothing more comes
  };
  struct Pair {
    Way there;
    Way back;
  };

  void Run(const std::stop_token& stop);
  void Accept();
  void Receive(Way* way) const;
  static bool Deliver(Way* way);
  // `ready`: the listener, then both ways of each pair.
  void PassOn(const std::vector<pollfd>& ready);
  void CloseAll(bool reset);

  int listener_ = -1;
  uint16_t port_ = 0;
  std::vector<Pair> pairs_;  // the thread's only
  std::atomic<uint16_t> server_port_;
  std::atomic<bool> silent_ = false;
  std::atomic<bool> cut_ = false;
  std::atomic<int64_t> delay_ms_ = 0;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace fluxqueue::testing
