#include "libs/graph/slot_parts.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "libs/graph/slot_choice.h"

namespace fluxqueue::graph {
namespace {

// Hands out the candidates of each type, whole vertices one after another.
class PartSource {
 public:
  explicit PartSource(const Candidates& parts) : parts_(parts) {}

  uint64_t Qualified(TypeId type) const {
    const CandidateList* list = parts_.Find(type);
    return list == nullptr ? 0 : list->qualified();
  }

  // How many slots the candidates are enough for: a share of a vertex is one slot's, whatever it
  // has.
  uint64_t SlotsOf(TypeId type, uint64_t count) const {
    if (count == 0) return 0;
    ShareTally tally(count);
    for (const Candidate& candidate : parts_.Find(type)->all()) {
      tally.Add(IsShare(candidate) ? count : candidate.count);
    }
    return tally.shares();
  }

  // Adds what one slot takes. False when there is too little left.
  bool AddSlot(const std::vector<RequestLevel>& shape, Candidate* slot) {
    for (const RequestLevel& part : shape) {
      const uint64_t count = part.request->count.Best(Qualified(part.type));
      for (uint64_t taken = 0; taken < count;) {
        const std::vector<Candidate>& all = parts_.Find(part.type)->all();
        size_t& at = next_[part.type];
        if (at == all.size()) return false;
        const Candidate& candidate = all[at++];
        const TakenEdge& edge = candidate.edges.front();
        slot->edges.push_back({edge.edge, candidate.count, true, edge.share});
        slot->score += candidate.score;
        taken += IsShare(candidate) ? count : candidate.count;
      }
    }
    return true;
  }

 private:
  static bool IsShare(const Candidate& candidate) { return candidate.edges.front().share; }

  const Candidates& parts_;
  std::map<TypeId, size_t> next_;
};

}  // namespace

std::vector<Candidate> MakeSlots(const RequestLevel& slot, const Candidates& parts) {
  PartSource source(parts);
  uint64_t slots = slot.with.empty() ? 0 : UINT64_MAX;
  for (const RequestLevel& part : slot.with) {
    const uint64_t count = part.request->count.Best(source.Qualified(part.type));
    slots = std::min(slots, source.SlotsOf(part.type, count));
  }
  std::vector<Candidate> made(slots, Candidate{kMet, 1, {}});
  for (Candidate& candidate : made) {
    if (!source.AddSlot(slot.with, &candidate)) return {};
  }
  return made;
}

std::vector<RequestLevel> PartsOf(const std::vector<RequestLevel>& kinds) {
  std::map<TypeId, const RequestLevel*> by_type;
  for (const RequestLevel& kind : kinds) {
    for (const RequestLevel& part : kind.with) {
      const RequestLevel*& most = by_type[part.type];
      if (most == nullptr || most->request->count.min < part.request->count.min) most = &part;
    }
  }
  std::vector<RequestLevel> parts;
  for (const auto& [type, part] : by_type) parts.push_back(*part);
  return parts;
}

std::vector<Candidate> MakeSlotsOf(const std::vector<RequestLevel>& kinds,
                                   uint64_t most,
                                   const Candidates& parts) {
  PartSource source(parts);
  std::map<TypeId, size_t> places;  // of a type among the counts
  std::vector<uint64_t> counts;
  std::vector<SlotKind> shapes;
  for (const RequestLevel& kind : kinds) {
    SlotKind& shape = shapes.emplace_back();
    for (const RequestLevel& part : kind.with) {
      const auto [place, added] = places.emplace(part.type, counts.size());
      if (added) counts.push_back(source.Qualified(part.type));
      shape.push_back({place->second, part.request->count});
    }
  }
  size_t vertices = 0;
  for (const auto& [type, list] : parts.lists) vertices += list.all().size();
  most = std::min<uint64_t>(most, vertices);
  std::vector<Candidate> made;
  for (const size_t kind : ChooseSlots(shapes, counts, most)) {
    Candidate& candidate = made.emplace_back(Candidate{kMet, 1, {}});
    if (!source.AddSlot(kinds[kind].with, &candidate)) return {};
  }
  return made;
}

}  // namespace fluxqueue::graph
