// When a loop may begin its next batch. A commit of a hundred messages costs far less than a
// hundred commits: a loop that is busy lets them gather. One that was idle has time to its credit,
// and does not wait at all.
//
// How long they gather is a matter of what else the machine has to do. While its processors are
// idle, commits may take a fourth of the loop's time, and what is said is on its way at once; where
// all of them are at work, a fortieth, since each commit takes time from others. Where commits grow
// slow, batches grow with them.
//
// A leaky bucket (ITU-T I.371, "virtual scheduling"), in which a commit weighs as many times the
// time it took. Pure; not thread-safe.
#pragma once

#include <chrono>

namespace fluxqueue::delivery {

class Pacer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // What a commit weighs while processors are idle, and when all are at work; in between it grows
  // with their load.
  static constexpr double kIdleWeight = 4;
  static constexpr double kFullWeight = 40;
  static constexpr double kIdleBelow = 0.7;
  static constexpr double kFullFrom = 0.95;
  // The credit of an idle loop, in weighted time.
  static constexpr Duration kCredit = std::chrono::milliseconds(1000);
  // The longest that a batch is put off.
  static constexpr Duration kLongest = std::chrono::milliseconds(250);

  // `busy`: the share of the machine's processors that are at work, 0 to 1.
  void Committed(TimePoint now, Duration took, double busy);
  // Not later than kLongest after the last commit.
  TimePoint NextAt() const { return paid_at_ - kCredit; }

 private:
  TimePoint paid_at_;  // when all commits so far will have been paid for
};

}  // namespace fluxqueue::delivery
