// How much of one amount is free at each time: a step function over whole seconds.
//
// Spans are added and taken out; each begins and ends at a point. Points are counted, so that they
// go when the last span that touches them goes: they are the times at which something can change,
// and so the only ones at which a reservation need be tried (Fluxion's "scheduled points").
//
// Plain value; not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "libs/graph/fnv.h"

namespace fluxqueue::graph {

class Timeline {
 public:
  static constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

  explicit Timeline(int64_t total) : total_(total) { points_.emplace(0, Point{total, 1}); }

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

  // The first point after `time`, if there is one.
  std::optional<int64_t> PointAfter(int64_t time) const;
  // Spans begin or end somewhere.
  bool HasSpans() const { return points_.size() > 1 || points_.begin()->second.references > 1; }

  void AddTo(Fnv* hash) const;

  friend bool operator==(const Timeline&, const Timeline&) = default;

 private:
  struct Point {
    int64_t free = 0;  // from here to the next point
    int64_t references = 0;

    friend bool operator==(const Point&, const Point&) = default;
  };
  using Points = std::map<int64_t, Point>;

  void Change(int64_t at, int64_t duration, int64_t amount, int references);
  Points::iterator Touch(int64_t at);

  int64_t total_;
  Points points_;  // never without the point at 0
};

}  // namespace fluxqueue::graph
