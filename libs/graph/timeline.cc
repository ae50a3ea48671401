#include "libs/graph/timeline.h"

#include <algorithm>
#include <iterator>

namespace fluxqueue::graph {
namespace {

// The beginning, and where one or two jobs end: most timelines have no more.
constexpr size_t kFewPoints = 3;

}  // namespace

void Timeline::Run::FindLeast() {
  least = points.front().free;
  for (const Point& point : points) least = std::min(least, point.free);
}

Timeline::Place Timeline::Find(int64_t time) const {
  const auto run = std::prev(std::upper_bound(
      runs_.begin() + 1, runs_.end(), time, [](int64_t wanted, const Run& candidate) {
        return wanted < candidate.points.front().time;
      }));
  const auto point = std::prev(std::upper_bound(
      run->points.begin() + 1, run->points.end(), time, [](int64_t wanted, const Point& candidate) {
        return wanted < candidate.time;
      }));
  return {static_cast<size_t>(run - runs_.begin()),
          static_cast<size_t>(point - run->points.begin())};
}

int64_t Timeline::FreeAt(int64_t at) const {
  if (runs_.empty()) return total_;
  const Place place = Find(at);
  return runs_[place.run].points[place.point].free + runs_[place.run].added;
}

int64_t Timeline::FreeDuring(int64_t at, int64_t duration) const {
  if (runs_.empty()) return total_;
  auto [r, p] = Find(at);
  int64_t least = runs_[r].points[p].free + runs_[r].added;
  const auto before_end = [at, duration](int64_t time) { return time - at < duration; };
  for (++p; r < runs_.size() && (p > 0 || before_end(runs_[r].points[0].time)); ++r, p = 0) {
    const Run& run = runs_[r];
    if (p == 0 && before_end(run.points.back().time)) {
      least = std::min(least, run.least + run.added);
      continue;
    }
    for (; p < run.points.size() && before_end(run.points[p].time); ++p) {
      least = std::min(least, run.points[p].free + run.added);
    }
    if (p < run.points.size()) break;
  }
  return least;
}

// Each point ends or goes on with a stretch that has enough; the first one that is long enough is
// it. In a run that has enough throughout no point need be looked at.
std::optional<int64_t> Timeline::FirstFrom(int64_t at, int64_t duration, int64_t amount) const {
  if (runs_.empty()) return total_ >= amount ? std::optional(at) : std::nullopt;
  int64_t first = at;
  bool enough = true;  // from `first` on until here
  auto [r, p] = Find(at);
  for (; r < runs_.size(); ++r, p = 0) {
    const Run& run = runs_[r];
    if (run.least + run.added >= amount) {
      if (!enough) first = run.points[p].time;
      enough = true;
      if (run.points.back().time - first >= duration) return first;
      continue;
    }
    for (; p < run.points.size(); ++p) {
      const Point& point = run.points[p];
      if (enough && point.time - first >= duration) return first;
      const bool has = point.free + run.added >= amount;
      if (has && !enough) first = point.time;
      enough = has;
    }
  }
  return enough ? std::optional(first) : std::nullopt;
}

std::optional<int64_t> Timeline::PointAfter(int64_t time) const {
  if (runs_.empty()) return std::nullopt;
  const auto [r, p] = Find(time);
  if (p + 1 < runs_[r].points.size()) return runs_[r].points[p + 1].time;
  if (r + 1 < runs_.size()) return runs_[r + 1].points.front().time;
  return std::nullopt;
}

void Timeline::Grow(int64_t more) {
  total_ += more;
  for (Run& run : runs_) run.added += more;
}

template <typename Visit>
void Timeline::ForEachPoint(const Visit& visit) const {
  for (const Run& run : runs_) {
    for (const Point& point : run.points) {
      visit(Point{point.time, point.free + run.added, point.references});
    }
  }
}

void Timeline::AddTo(Fnv* hash) const {
  hash->Add(static_cast<uint64_t>(total_));
  ForEachPoint([hash](const Point& point) {
    hash->Add(static_cast<uint64_t>(point.time));
    hash->Add(static_cast<uint64_t>(point.free));
    hash->Add(static_cast<uint64_t>(point.references));
  });
}

bool operator==(const Timeline& a, const Timeline& b) {
  const auto numbers = [](const Timeline& timeline) {
    std::vector<int64_t> all = {timeline.total_};
    timeline.ForEachPoint([&all](const Timeline::Point& point) {
      all.insert(all.end(), {point.time, point.free, point.references});
    });
    return all;
  };
  return numbers(a) == numbers(b);
}

Timeline::Place Timeline::Touch(int64_t time) {
  if (runs_.empty()) {
    runs_.emplace_back();
    runs_[0].points.reserve(kFewPoints);
    runs_[0].points.push_back({0, total_, 0});
    runs_[0].least = total_;
  }
  const Place place = Find(time);
  Run& run = runs_[place.run];
  if (run.points[place.point].time == time) return place;
  const Point point{time, run.points[place.point].free, 0};
  run.points.insert(run.points.begin() + static_cast<ptrdiff_t>(place.point) + 1, point);
  if (run.points.size() <= kMaxRun) return {place.run, place.point + 1};
  Run second;
  const auto half = run.points.begin() + kMaxRun / 2;
  second.points.assign(half, run.points.end());
  second.added = run.added;
  second.FindLeast();
  run.points.erase(half, run.points.end());
  run.FindLeast();
  runs_.insert(runs_.begin() + static_cast<ptrdiff_t>(place.run) + 1, std::move(second));
  return Find(time);
}

void Timeline::Unreference(int64_t time) {
  const auto [r, p] = Find(time);
  std::vector<Point>& points = runs_[r].points;
  if (points[p].references > 0 || time == 0) return;
  points.erase(points.begin() + static_cast<ptrdiff_t>(p));
  if (points.empty()) {
    runs_.erase(runs_.begin() + static_cast<ptrdiff_t>(r));
  } else {
    runs_[r].FindLeast();
  }
}

void Timeline::Change(int64_t at, int64_t duration, int64_t amount, int references) {
  const int64_t end = at + duration;
  Place place = Touch(end);
  runs_[place.run].points[place.point].references += references;
  place = Touch(at);
  runs_[place.run].points[place.point].references += references;
  for (auto [r, p] = place; r < runs_.size() && runs_[r].points[p].time < end; ++r, p = 0) {
    Run& run = runs_[r];
    if (p == 0 && run.points.back().time < end) {
      run.added += amount;
      continue;
    }
    for (; p < run.points.size() && run.points[p].time < end; ++p) run.points[p].free += amount;
    run.FindLeast();
  }
  if (references > 0) return;
  Unreference(end);
  Unreference(at);
  const Run& first = runs_.front();
  if (runs_.size() == 1 && first.points.size() == 1 && first.points[0].references == 0) {
    runs_.clear();
  }
}

}  // namespace fluxqueue::graph
