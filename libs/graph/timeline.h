// How much of one amount is free at each time: a step function over whole seconds.
//
// Spans are added and taken out; each begins and ends at a point. Points are counted, so that they
// go when the last span that touches them goes: they are the times at which something can change,
// and so the only ones at which a reservation need be tried (Fluxion's "scheduled points").
//
// Points stand in runs of bounded length, each with the least that is free in it, so that a change
// or a question costs a look at the runs and at the points of two of them: with p points about √p.
//
// Plain value; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "libs/graph/fnv.h"

namespace fluxqueue::graph {

class Timeline {
 public:
  static constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

  explicit Timeline(int64_t total) : total_(total) {}

  int64_t total() const { return total_; }
  int64_t FreeAt(int64_t at) const;
  // The least that is free anywhere in [at, at + duration).
  int64_t FreeDuring(int64_t at, int64_t duration) const;

  // `amount` less is free in [at, at + duration). Negative: the opposite of an earlier Hold.
  // REQUIRES: at >= 0, duration >= 1, the end is at most kEnd.
  void Hold(int64_t at, int64_t duration, int64_t amount) { Change(at, duration, -amount, 1); }
  // Takes out what Hold with the same arguments put in.
  void Release(int64_t at, int64_t duration, int64_t amount) { Change(at, duration, amount, -1); }

  // There is `more` at all times (or less, when negative). What is free can become negative.
  void Grow(int64_t more);

  // The first time from `at` on from which at least `amount` is free for so long: `at` itself, or a
  // point.
  std::optional<int64_t> FirstFrom(int64_t at, int64_t duration, int64_t amount) const;
  // The first point after `time`, if there is one.
  std::optional<int64_t> PointAfter(int64_t time) const;
  // Spans begin or end somewhere.
  bool HasSpans() const { return !runs_.empty(); }

  void AddTo(Fnv* hash) const;

  // The same function with the same points.
  friend bool operator==(const Timeline& a, const Timeline& b);

 private:
  struct Point {
    int64_t time = 0;
    int64_t free = 0;  // from here to the next point, less its run's `added`
    int64_t references = 0;
  };
  struct Run {
    std::vector<Point> points;  // never empty
    int64_t added = 0;          // to each of them
    int64_t least = 0;          // free at any of them, less `added`

    void FindLeast();
  };
  struct Place {
    size_t run;
    size_t point;
  };
  static constexpr size_t kMaxRun = 128;

  void Change(int64_t at, int64_t duration, int64_t amount, int references);
  // The last point at or before the time. REQUIRES: there are points.
  Place Find(int64_t time) const;
  Place Touch(int64_t time);
  void Unreference(int64_t time);
  template <typename Visit>
  void ForEachPoint(const Visit& visit) const;

  int64_t total_;
  // Empty without spans; else the first point is at 0, and is there for ever.
  std::vector<Run> runs_;
};

}  // namespace fluxqueue::graph
