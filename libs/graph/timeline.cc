#include "libs/graph/timeline.h"

#include <algorithm>
#include <iterator>

namespace fluxqueue::graph {

int64_t Timeline::FreeAt(int64_t at) const {
  return std::prev(points_.upper_bound(at))->second.free;
}

int64_t Timeline::FreeDuring(int64_t at, int64_t duration) const {
  auto point = std::prev(points_.upper_bound(at));
  int64_t least = point->second.free;
  for (++point; point != points_.end() && point->first - at < duration; ++point) {
    least = std::min(least, point->second.free);
  }
  return least;
}

std::optional<int64_t> Timeline::PointAfter(int64_t time) const {
  const auto point = points_.upper_bound(time);
  if (point == points_.end()) return std::nullopt;
  return point->first;
}

void Timeline::Grow(int64_t more) {
  total_ += more;
  for (auto& [time, point] : points_) point.free += more;
}

void Timeline::AddTo(Fnv* hash) const {
  hash->Add(points_.size());
  for (const auto& [time, point] : points_) {
    hash->Add(static_cast<uint64_t>(time));
    hash->Add(static_cast<uint64_t>(point.free));
    hash->Add(static_cast<uint64_t>(point.references));
  }
}

Timeline::Points::iterator Timeline::Touch(int64_t at) {
  const auto after = points_.upper_bound(at);
  const auto before = std::prev(after);
  if (before->first == at) return before;
  return points_.emplace_hint(after, at, Point{before->second.free, 0});
}

void Timeline::Change(int64_t at, int64_t duration, int64_t amount, int references) {
  const auto begin = Touch(at);
  const auto end = Touch(at + duration);
  for (auto point = begin; point != end; ++point) point->second.free += amount;
  for (const auto point : {begin, end}) {
    point->second.references += references;
    if (point->second.references == 0) points_.erase(point);
  }
}

}  // namespace fluxqueue::graph
