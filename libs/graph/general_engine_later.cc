// When a request first fits: what is reserved.
//
// By definition the points after now, at which something begins or ends, are tried in turn: the
// first one at which the request fits is taken. A long queue with a reservation for each job asks
// that of hundreds of jobs, over hundreds of points, on thousands of nodes. So:
//
// - Points at which the whole graph has too little are passed over together, by the sums at the
//   root (EnoughFrom). A search there would find nothing.
// - Points at which no node has more than at the last one tried are passed over: what did not fit
//   does not fit there either. And of the nodes only those are looked at again of which something
//   begins or ends in the times that the window left behind or gained (IndexedSearch's sweep).
// - While more and more is held and nothing is given back, as within a scheduling cycle, a like
//   request does not fit before the time that was found for one as long or shorter (Known). That
//   holds for points that have come since, too: between two points what is free does not change, so
//   at a time between them nothing fits that does not fit at the first one of them.
#include <algorithm>
#include <iterator>
#include <utility>

#include "libs/graph/general_engine.h"

namespace fluxqueue::graph {

GeneralEngine::Known& GeneralEngine::KnownOf(const Prepared& request) const {
  if (request.known.freed != state_.freed()) {
    request.known = {};
    request.known.freed = state_.freed();
  }
  return request.known;
}

GeneralEngine::Known& GeneralEngine::KnownAfter(const Prepared& request, int64_t time) const {
  Known& known = KnownOf(request);
  if (known.not_before.empty() || known.after_s != time) {
    known.after_s = time;
    known.first_s = PointAfter(time).value_or(Timeline::kEnd);
    known.not_before.clear();
  }
  return known;
}

std::optional<int64_t> GeneralEngine::SkipKnown(const Known& known,
                                                int64_t duration,
                                                int64_t point) const {
  // One that has come since, before all that there were.
  if (point < known.first_s) return point;
  const auto longer = known.not_before.upper_bound(duration);
  if (longer == known.not_before.begin()) return point;
  return PointAfter(std::max(point, std::prev(longer)->second) - 1);
}

std::optional<int64_t> GeneralEngine::FindFirst(const Prepared& request,
                                                const When& after,
                                                int64_t before,
                                                Holding* holding) {
  const int64_t duration = after.duration_s == 0 ? kForever : after.duration_s;
  Known& known = KnownAfter(request, after.now_s);
  if (request.plan.has_value()) search_.BeginSweep(*request.plan);
  int64_t found = before;
  for (auto time = PointAfter(after.now_s); time.has_value();) {
    time = SkipKnown(known, duration, *time);
    if (time.has_value()) time = EnoughFrom(request.resolved, {*time, duration});
    if (!time.has_value() || *time >= before) break;
    const int64_t here = *time;
    std::optional<Selection> selection = SweepOn(request, duration, &time);
    if (!selection.has_value()) continue;
    found = here;
    if (holding != nullptr) *holding = Take(*std::move(selection));
    break;
  }
  const auto [entry, added] = known.not_before.insert_or_assign(duration, found);
  auto next = std::next(entry);
  while (next != known.not_before.end() && next->second <= found) {
    next = known.not_before.erase(next);
  }
  return found < before ? std::optional(found) : std::nullopt;
}

std::optional<Selection> GeneralEngine::SweepOn(const Prepared& request,
                                                int64_t duration,
                                                std::optional<int64_t>* time) {
  using Answer = IndexedSearch::Answer;
  const Window window{**time, duration, Window::Kind::kLater};
  Answer answer = Answer::kAskAWalk;
  if (request.plan.has_value()) {
    Selection selection;
    answer = search_.SearchNext(*request.plan, window, &selection);
    if (answer == Answer::kFound) return selection;
  }
  if (answer == Answer::kAskAWalk) {
    if (auto selection = Walk(request, window)) return selection;
    *time = PointAfter(**time);
    return std::nullopt;
  }
  *time = search_.NextTime();
  if (time->has_value()) *time = PointAfter(**time - 1);
  return std::nullopt;
}

}  // namespace fluxqueue::graph
