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

#include "libs/base/status_macros.h"
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
  search_.BeginSweep();
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

// A quick look at what the whole graph has then.
bool GeneralEngine::HasEnough(const ResolvedRequest& request, const When& at) const {
  if (state_.IsOverheld()) return true;
  const auto sums = SumsOf(request);
  return std::all_of(sums.begin(), sums.end(), [&at](const Sum& sum) {
    return sum.free->FreeDuring(at.now_s, at.duration_s) >= sum.needed;
  });
}

// What one sum has from some time on another may not have yet: each is asked until all agree.
std::optional<int64_t> GeneralEngine::EnoughFrom(const ResolvedRequest& request,
                                                 const When& at) const {
  if (state_.IsOverheld()) return at.now_s;
  const auto sums = SumsOf(request);
  int64_t time = at.now_s;
  for (size_t agree = 0, i = 0; agree < sums.size(); ++i) {
    const Sum& sum = sums[i % sums.size()];
    const auto enough = sum.free->FirstFrom(time, at.duration_s, sum.needed);
    if (!enough.has_value()) return std::nullopt;
    agree = *enough == time ? agree + 1 : 1;
    time = *enough;
  }
  return time;
}

// What the root sums up of what the request asks for.
std::vector<GeneralEngine::Sum> GeneralEngine::SumsOf(const ResolvedRequest& request) const {
  const std::span<const TypeId> types = state_.FilterTypes(graph_.root());
  const std::span<const Timeline> filters = state_.Filters(graph_.root());
  std::vector<Sum> sums;
  for (const auto& [type, amount] : request.total) {
    const auto filter = std::find(types.begin(), types.end(), type);
    if (filter == types.end()) continue;
    sums.push_back({&filters[static_cast<size_t>(filter - types.begin())], amount});
  }
  return sums;
}

std::optional<int64_t> GeneralEngine::PointAfter(int64_t time) const {
  return state_.JobsAt(graph_.root()).PointAfter(time);
}

// The times at which something ends or begins are tried in turn, those at which the whole graph
// has enough.
Holding GeneralEngine::PlaceLater(const Alternatives& alternatives, const When& when) {
  for (auto time = PointAfter(when.now_s); time.has_value(); time = PointAfter(*time)) {
    std::optional<int64_t> enough;
    for (const Prepared* request : alternatives) {
      const auto from = EnoughFrom(request->resolved, {*time, when.duration_s});
      if (from.has_value()) enough = std::min(*from, enough.value_or(*from));
    }
    if (!enough.has_value()) break;
    time = enough;
    Holding holding = Place(alternatives, {*time, when.duration_s, Window::Kind::kLater});
    if (!holding.vertices.empty()) return holding;
  }
  return {};
}

absl::StatusOr<MatchAnswer> GeneralEngine::Reserve(JobNumber job,
                                                   const JobRequest& request,
                                                   const When& at) {
  if (jobs_.contains(job)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "job {} holds something already", job);
  }
  Settle();
  const Prepared& prepared = Prepare(request);
  const When when{at.now_s, at.duration_s == 0 ? kForever : at.duration_s};
  MatchAnswer answer;
  if (!HasEnough(prepared.resolved, when)) return answer;
  answer.holding = Place({&prepared}, {when.now_s, when.duration_s, Window::Kind::kLater});
  if (answer.holding.vertices.empty()) return answer;
  answer.status = MatchStatus::kReserved;
  SetHolding(job, answer.holding);
  return answer;
}

absl::StatusOr<MatchAnswer> GeneralEngine::ReserveFirst(JobNumber job,
                                                        const JobRequest& request,
                                                        const When& after,
                                                        int64_t before) {
  if (jobs_.contains(job)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "job {} holds something already", job);
  }
  Settle();
  MatchAnswer answer;
  if (!FindFirst(Prepare(request), after, before, &answer.holding).has_value()) return answer;
  answer.status = MatchStatus::kReserved;
  SetHolding(job, answer.holding);
  return answer;
}

std::optional<int64_t> GeneralEngine::FirstTime(const JobRequest& request,
                                                const When& after,
                                                int64_t before) {
  Settle();
  return FindFirst(Prepare(request), after, before, nullptr);
}

}  // namespace fluxqueue::graph
