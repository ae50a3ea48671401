// A way between a client and a server on this machine that can fall silent: connections stay, what
// is sent is acknowledged by the kernel, and nothing arrives any more. So does a host that vanishes
// behind a network which still answers for it, or a server that is stopped. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

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

 private:
  struct Pair {
    int client;
    int server;
  };

  void Run(const std::stop_token& stop);
  void Accept();
  void PassOn();
  void CloseAll();

  const uint16_t server_port_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::vector<Pair> pairs_;  // the thread's only
  std::atomic<bool> silent_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace fluxqueue::testing
