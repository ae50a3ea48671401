#include "libs/graph/room_times.h"

#include <iterator>

namespace fluxqueue::graph {
namespace {

// Of so many sites in all, and of so many sweeps.
constexpr size_t kMaxSites = 4'000'000;
constexpr size_t kMinSweeps = 4;
constexpr size_t kMaxSweeps = 256;
// Of the sweeps before it that tell a sweep something, so many are asked.
constexpr int kAsked = 4;

}  // namespace

bool RoomTimes::Wanted::IsWithin(const Wanted& other) const {
  if (duration_s > other.duration_s) return false;
  return std::all_of(amounts.begin(), amounts.end(), [&other](const auto& amount) {
    const auto more = std::lower_bound(other.amounts.begin(), other.amounts.end(), amount);
    return more != other.amounts.end() && more->first == amount.first;
  });
}

void RoomTimes::Clear(size_t sites) {
  known_.clear();
  changed_.assign(sites, 0);
}

void RoomTimes::BeginSweep(Wanted wanted, int64_t time) {
  const size_t sites = changed_.size();
  const size_t most = std::clamp(kMaxSites / std::max<size_t>(sites, 1), kMinSweeps, kMaxSweeps);
  if (known_.size() < most) {
    known_.emplace_front();
  } else {
    known_.splice(known_.begin(), known_, std::prev(known_.end()));
  }
  Known& known = known_.front();
  known.wanted = std::move(wanted);
  known.sweep = ++sweeps_;
  known.since_s = time;
  known.room_s.assign(sites, time);
  int asked = 0;
  for (auto other = std::next(known_.begin()); other != known_.end() && asked < kAsked; ++other) {
    if (other->since_s > time || !other->wanted.IsWithin(known.wanted)) continue;
    TakeOver(*other);
    ++asked;
  }
}

void RoomTimes::TakeOver(const Known& other) {
  std::vector<int64_t>& rooms = known_.front().room_s;
  for (size_t site = 0; site < rooms.size(); ++site) {
    if (changed_[site] < other.sweep) rooms[site] = std::max(rooms[site], other.room_s[site]);
  }
}

void RoomTimes::Note(SiteId site, int64_t time, int64_t room) {
  Known& known = known_.front();
  // Of the time in between nothing is known.
  if (known.room_s[site] < time) known.since_s = time;
  known.room_s[site] = room;
}

std::optional<int64_t> RoomTimes::NextAfter(int64_t time) const {
  int64_t next = Timeline::kEnd;
  for (const int64_t room : front().room_s) next = std::min(next, room > time ? room : next);
  return next == Timeline::kEnd ? std::nullopt : std::optional(next);
}

}  // namespace fluxqueue::graph
