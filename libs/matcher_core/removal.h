// Holders of something, and some slots of such, each in or out of the graph, to see for whom there
// is room without them.
//
// Out is: released, and restored at its place afterwards; so the engine's fingerprint is the same
// in the end. Reservations stand all the while, and are not touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "libs/graph/engine.h"
#include "libs/graph/types.h"

namespace fluxqueue::matcher_core {

class Removal {
 public:
  explicit Removal(graph::Engine* engine) : engine_(engine) {}
  ~Removal() { PutBack(); }
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

  // One more, which is in, with all that it holds. False: it is there already, or holds nothing
  // (any more).
  bool Add(const graph::AllocationKey& key);
  // The same of some of its slots, beside those that were added before. Those that it does not hold
  // are left out; false: it holds none of them.
  bool AddSlots(const graph::AllocationKey& key, const std::vector<uint32_t>& slots);

  size_t size() const { return parts_.size(); }
  const graph::AllocationKey& key(size_t i) const { return holders_[parts_[i].holder].key; }
  // Rising; none: it is all that the holder has.
  const std::vector<uint32_t>& slots(size_t i) const { return parts_[i].slots; }
  // What would come free, beside what is out now, without any other slots. It holds nothing where
  // that is all out. REQUIRES: of parts that are some slots, that the holder's are equal.
  graph::Placement Placed(size_t i) const;
  // It is out, or its holder is with all that it has.
  bool is_out(size_t i) const { return parts_[i].out; }
  bool holder_is_out(size_t i) const { return holders_[parts_[i].holder].out; }

  void Set(size_t i, bool out) { SetAll({&i, 1}, out); }
  // Each holder is placed once, however many of its slots change.
  void SetAll(std::span<const size_t> parts, bool out);
  void TakeOutAll();
  void PutBack();

  // Whether there is room now. Holds nothing afterwards.
  bool Fits(const graph::MatchRequest& request);
  // Of `order` the shortest beginning without which it fits is out, and no other of it. False:
  // it does not fit without all of it. 1 + log2(n) matches. Where a policy finds room in less than
  // it misses it in, the beginning may be longer than need be; never too short.
  bool FindBeginning(const graph::MatchRequest& request, std::span<const size_t> order);
  // Of these, in this order, every one that is out goes back in without which it fits all the same.
  // REQUIRES: it fits. What is out then is minimal. One match for each.
  void Spare(const graph::MatchRequest& request, std::span<const size_t> order);

 private:
  struct Holder {
    graph::AllocationKey key;
    graph::Placement placement;  // with all that is in or out
    bool out = false;            // all of it
    bool listed = false;         // as a whole
  };
  struct Part {
    size_t holder = 0;
    std::vector<uint32_t> slots;
    bool out = false;
  };

  std::vector<size_t> Backwards() const;
  // Unset: it holds nothing.
  Holder* HolderOf(const graph::AllocationKey& key);
  // Without the slots that are out.
  graph::Placement Left(size_t holder) const;
  void Restore(size_t holder);

  graph::Engine* const engine_;
  std::vector<Holder> holders_;
  std::map<graph::AllocationKey, size_t> places_;  // of holders
  std::vector<Part> parts_;
  std::map<size_t, std::vector<size_t>> split_;  // by holder: parts that are some of its slots
};

}  // namespace fluxqueue::matcher_core
