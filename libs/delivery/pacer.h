// When a loop may begin its next batch. A commit of a hundred messages costs far less than
// a hundred commits: a loop that is busy lets them gather, so that commits take a twentieth of
// its time at most. One that was idle has time to its credit, and does not wait at all. Where
// commits grow slow because the machine is, batches grow with them.
//
// A leaky bucket (ITU-T I.371, "virtual scheduling"), in which a commit weighs twenty times the
// time it took. Pure; not thread-safe.
#pragma once

#include <chrono>

namespace fluxqueue::delivery {

class Pacer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  static constexpr int kWeight = 20;
  // The credit of an idle loop, in weighted time.
  static constexpr Duration kCredit = std::chrono::milliseconds(1000);
  // The longest that a batch is put off.
  static constexpr Duration kLongest = std::chrono::milliseconds(100);

  void Committed(TimePoint now, Duration took);
  // Not later than kLongest after the last commit.
  TimePoint NextAt() const { return paid_at_ - kCredit; }

 private:
  TimePoint paid_at_;  // when all commits so far will have been paid for
};

}  // namespace fluxqueue::delivery
