// What a traversal has found below a vertex, by type, and which of it is taken.
//
// A candidate is a vertex that fits (or, for slots, the vertices of one slot), with a score; the
// policy's comparison orders candidates, and the first that make up the count are taken. Equal
// scores stay in the order in which std::sort leaves them, as in Fluxion, but for `packed`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "libs/graph/resource_graph.h"

namespace fluxqueue::graph {

inline constexpr int64_t kUnmet = 0;
inline constexpr int64_t kMet = 1;

struct TakenEdge {
  EdgeId edge = 0;
  uint64_t amount = 0;
  bool exclusive = false;
  bool share = false;  // one of several that may be taken of the same vertex
};

struct Candidate {
  int64_t score = kUnmet;
  uint64_t count = 0;
  std::vector<TakenEdge> edges;  // empty for the root, which no edge leads to
  int64_t id = 0;                // of the vertex; for a slot, of the vertex that it is on
};

// Of one type.
class CandidateList {
 public:
  void Add(Candidate candidate) {
    found_ = Sum(found_, candidate.count);
    if (candidate.score > kUnmet) qualified_ = Sum(qualified_, candidate.count);
    candidates_.push_back(std::move(candidate));
  }
  void Append(const CandidateList& other) {
    found_ = Sum(found_, other.found_);
    qualified_ = Sum(qualified_, other.qualified_);
    candidates_.insert(candidates_.end(), other.candidates_.begin(), other.candidates_.end());
  }

  uint64_t found() const { return found_; }
  uint64_t qualified() const { return qualified_; }
  const std::vector<Candidate>& all() const { return candidates_; }
  std::vector<Candidate>& all() { return candidates_; }
  // How many of the first candidates are taken; 0 before Take.
  size_t taken() const { return taken_; }

  // Orders the candidates and takes the first that make up `count`. Nothing happens when there are
  // fewer, or when the count is 0. `in_turn`: equals stay in the order in which they were found.
  template <typename Before>
  bool Take(uint64_t count, const Before& before, bool in_turn = false) {
    if (count == 0 || count > qualified_) return false;
    // Of equals that share a divisible vertex, those that were found first.
    const bool shares = std::any_of(candidates_.begin(), candidates_.end(), [](const Candidate& c) {
      return std::any_of(c.edges.begin(), c.edges.end(), [](const auto& e) { return e.share; });
    });
    if (shares || in_turn) {
      std::stable_sort(candidates_.begin(), candidates_.end(), before);
    } else {
      std::sort(candidates_.begin(), candidates_.end(), before);
    }
    uint64_t taken = 0;
    for (taken_ = 0; taken < count; ++taken_) taken += candidates_[taken_].count;
    return true;
  }

 private:
  // As many as a count can say.
  static constexpr uint64_t kMost = uint64_t{1} << 62;
  static uint64_t Sum(uint64_t a, uint64_t b) { return std::min(a + b, kMost); }

  std::vector<Candidate> candidates_;
  uint64_t found_ = 0;
  uint64_t qualified_ = 0;
  size_t taken_ = 0;
};

struct Candidates {
  // Made empty when there is none.
  CandidateList& Of(TypeId type);
  const CandidateList* Find(TypeId type) const;
  void Append(const Candidates& other);

  std::vector<std::pair<TypeId, CandidateList>> lists;
  // Something was taken here: what is below is settled, and is not passed up.
  bool settled = false;
  // What the vertex that was visited last says to its parent.
  int64_t score = -1;
  uint64_t available = 0;
};

inline CandidateList& Candidates::Of(TypeId type) {
  for (auto& [key, list] : lists) {
    if (key == type) return list;
  }
  return lists.emplace_back(type, CandidateList()).second;
}

inline const CandidateList* Candidates::Find(TypeId type) const {
  for (const auto& [key, list] : lists) {
    if (key == type) return &list;
  }
  return nullptr;
}

inline void Candidates::Append(const Candidates& other) {
  for (const auto& [type, list] : other.lists) Of(type).Append(list);
}

}  // namespace fluxqueue::graph
