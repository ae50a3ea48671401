// Ends the wait for a server that does not answer: a host that has vanished after it took the
// question, a process that is stopped. libpq itself waits for ever, and TCP sees nothing as long as
// something on the way acknowledges.
//
// A thread of its own looks at the connection now and then. When a call is under way and the server
// has answered none of its statements for `patience`, it shuts the socket down, and libpq fails as
// if the server had closed the connection. It shuts down a duplicate of the descriptor, which is
// its own: the number of libpq's may be another connection's by then.
//
// Call, Answered and Guard: on the thread of the connection.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "libs/base/clock.h"

namespace fluxqueue::postgres {

class AnswerWatch {
 public:
  // `patience`: that of a call which has none of its own, and the least.
  explicit AnswerWatch(Millis patience) : least_(patience), patience_(patience) {}
  ~AnswerWatch();
  AnswerWatch(const AnswerWatch&) = delete;
  AnswerWatch& operator=(const AnswerWatch&) = delete;

  // The connection's socket. Called once; until then nothing is watched.
  void Guard(int socket);

  // From its beginning to its end the server owes answers.
  class Call {
   public:
    explicit Call(AnswerWatch& watch) : Call(watch, watch.least_) {}
    Call(AnswerWatch& watch, Millis patience) : watch_(watch) {
      watch_.patience_ = patience;
      watch_.Restart();
    }
    ~Call() { watch_.waits_since_ = kNever; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    AnswerWatch& watch_;
  };
  // The server has answered a statement.
  void Answered();

  // It has shut the socket down. Stays true.
  bool gave_up() const { return gave_up_; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr TimePoint kNever = TimePoint::max();

  void Restart() { waits_since_ = std::chrono::steady_clock::now(); }
  void Run(const std::stop_token& stop);

  const Millis least_;
  std::atomic<Millis> patience_;  // of the call under way
  std::atomic<TimePoint> waits_since_ = kNever;
  std::atomic<bool> gave_up_ = false;
  int socket_ = -1;  // of its own

  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace fluxqueue::postgres
