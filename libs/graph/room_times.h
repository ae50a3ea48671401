// When nodes have room again, as sweeps (indexed_search.h) find it out. What one knows is kept for
// the next: in a long queue each of hundreds of jobs is reserved for, and most nodes are full.
//
// A node that has no room for a slot from one time until another has none then for a slot that
// wants as much of everything or more, for as long or longer. That stands until the node changes.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "libs/graph/timeline.h"
#include "libs/graph/topology.h"

namespace fluxqueue::graph {

class RoomTimes {
 public:
  // What a sweep wants of a node, of which less is of no use.
  struct Wanted {
    std::vector<std::pair<TypeId, uint64_t>> amounts;  // by type
    int64_t duration_s = 0;

    // Where this has no room, `other` has none.
    bool IsWithin(const Wanted& other) const;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };

  // Of so many sites, of which nothing is known.
  void Clear(size_t sites);
  size_t sites() const { return changed_.size(); }
  // The site may have room at other times than before.
  void Forget(SiteId site) { changed_[site] = sweeps_; }
  // What follows is about this sweep, and its times do not descend.
  void BeginSweep(Wanted wanted, int64_t time);

  // The site is known to have no room at that time.
  bool IsFullAt(SiteId site, int64_t time) const { return front().room_s[site] > time; }
  // The site has no room from `time` until `room`.
  void Note(SiteId site, int64_t time, int64_t room);
  // For each site that may have room again in (after, until].
  template <typename Visit>
  void ForEachIn(int64_t after, int64_t until, const Visit& visit) const;
  // The next time after this one at which a site may have room again.
  std::optional<int64_t> NextAfter(int64_t time) const;

 private:
  struct Known {
    Wanted wanted;
    uint64_t sweep = 0;  // its number
    int64_t since_s = 0;
    // By site: no room in [since_s, room_s).
    std::vector<int64_t> room_s;
  };

  const Known& front() const { return known_.front(); }
  void TakeOver(const Known& other);

  uint64_t sweeps_ = 0;
  std::vector<uint64_t> changed_;  // by site: the last sweep before it changed
  std::list<Known> known_;         // the last sweep's first
};

template <typename Visit>
void RoomTimes::ForEachIn(int64_t after, int64_t until, const Visit& visit) const {
  const std::vector<int64_t>& rooms = front().room_s;
  for (SiteId site = 0; site < rooms.size(); ++site) {
    if (rooms[site] > after && rooms[site] <= until) visit(site);
  }
}

}  // namespace fluxqueue::graph
