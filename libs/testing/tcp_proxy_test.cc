#include "libs/testing/tcp_proxy.h"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fluxqueue::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

sockaddr_in Here(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// To each message of its first client it says its name; then it ends.
class Server {
 public:
  explicit Server(std::string name) : name_(std::move(name)) {
    sockaddr_in address = Here(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { Run(); });
  }
  ~Server() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  uint16_t port() const { return port_; }

 private:
  void Run() const {
    const int client = accept(listener_, nullptr, nullptr);
    std::array<char, 64> buffer{};
    while (recv(client, buffer.data(), buffer.size(), 0) > 0) {
      send(client, name_.data(), name_.size(), MSG_NOSIGNAL);
    }
    close(client);
  }

  const std::string name_;
  const int listener_ = socket(AF_INET, SOCK_STREAM, 0);
  uint16_t port_ = 0;
  std::jthread thread_;
};

class Client {
 public:
  explicit Client(uint16_t port) {
    const sockaddr_in address = Here(port);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Client() { close(socket_); }

  void Say() const { EXPECT_EQ(send(socket_, "x", 1, MSG_NOSIGNAL), 1); }
  // "nothing" within the time, "the end" of the connection.
  std::string Hear(milliseconds within = milliseconds(5000)) const {
    pollfd ready{socket_, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(within.count())) == 0) return "nothing";
    std::array<char, 64> buffer{};
    const ssize_t size = recv(socket_, buffer.data(), buffer.size(), 0);
    return size <= 0 ? "the end" : std::string(buffer.data(), static_cast<size_t>(size));
  }
  std::string Ask() const {
    Say();
    return Hear();
  }

 private:
  const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
};

class TcpProxyTest : public ::testing::Test {
 protected:
  Server server_{"one"};
  TcpProxy proxy_{server_.port()};
  Client client_{proxy_.port()};
};

TEST_F(TcpProxyTest, PassesOn) {
  EXPECT_EQ(client_.Ask(), "one");
  EXPECT_EQ(client_.Ask(), "one");
}

TEST_F(TcpProxyTest, WhatIsSentWhileItIsSilentArrivesLater) {
  EXPECT_EQ(client_.Ask(), "one");
  proxy_.FallSilent();
  client_.Say();
  EXPECT_EQ(client_.Hear(milliseconds(100)), "nothing");
  proxy_.Speak();
  EXPECT_EQ(client_.Hear(), "one");
}

TEST_F(TcpProxyTest, EachWayTakesLonger) {
  EXPECT_EQ(client_.Ask(), "one");
  proxy_.Delay(milliseconds(50));
  const auto begun = Clock::now();
  EXPECT_EQ(client_.Ask(), "one");
  EXPECT_GE(Clock::now() - begun, milliseconds(100));
}

TEST_F(TcpProxyTest, ACutEndsTheConnectionsThatThereAre) {
  EXPECT_EQ(client_.Ask(), "one");
  proxy_.Cut();
  EXPECT_EQ(client_.Hear(), "the end");
}

TEST_F(TcpProxyTest, ConnectionsToComeGoToAnotherServer) {
  EXPECT_EQ(client_.Ask(), "one");
  const Server other("other");
  proxy_.LeadTo(other.port());
  const Client later(proxy_.port());
  EXPECT_EQ(later.Ask(), "other");
  EXPECT_EQ(client_.Ask(), "one");
}

}  // namespace
}  // namespace fluxqueue::testing
