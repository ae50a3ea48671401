#include "libs/graph/candidate_choice.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

namespace fluxqueue::graph {
namespace {

// A node's id counts as this many ids inside a node.
constexpr int64_t kNodeWeight = 10'000;
constexpr int64_t kWorstPerformance = 9'999;

bool Higher(const Candidate& a, const Candidate& b) {
  return a.score > b.score;
}
bool Lower(const Candidate& a, const Candidate& b) {
  return a.score < b.score;
}

bool LowerOfLowerId(const Candidate& a, const Candidate& b) {
  return std::pair(a.score, a.id) < std::pair(b.score, b.id);
}

// Runs of adjacent scores, and which of them each score is in.
class ScoreRuns {
 public:
  void Add(const CandidateList& list) {
    for (const Candidate& candidate : list.all()) first_of_run_[candidate.score] = 0;
    int64_t first = 0;
    int64_t before = INT64_MIN;
    for (auto& [score, first_of_run] : first_of_run_) {
      if (before == INT64_MIN || score != before + 1) first = score;
      first_of_run = first;
      before = score;
    }
  }
  // The first score of the run. REQUIRES: the score was added.
  int64_t RunOf(int64_t score) const { return first_of_run_.find(score)->second; }

 private:
  std::map<int64_t, int64_t> first_of_run_;  // by score
};

int64_t PerformanceClass(const Vertex& vertex) {
  for (const auto& [key, value] : vertex.properties) {
    if (key != "perf_class") continue;
    int64_t performance = 0;
    const auto result = std::from_chars(value.data(), value.data() + value.size(), performance);
    const bool good = result.ec == std::errc() && performance >= 0;
    return good ? std::min(performance, kWorstPerformance) : kWorstPerformance;
  }
  return kWorstPerformance;
}

}  // namespace

int64_t NodeScore(const MatchPolicy& policy, const Vertex& node) {
  if (!policy.node_centric) return 0;
  return (node.id + 2) * kNodeWeight + std::abs(node.uniq_id % kNodeWeight - 1);
}

int64_t VertexScore(const MatchPolicy& policy, const Vertex& vertex, int64_t nodes_above) {
  const bool by_class = policy.order == MatchPolicy::Order::kVariation;
  return kMet + (by_class ? PerformanceClass(vertex) : nodes_above + vertex.id + 1);
}

bool TakeBest(const MatchPolicy& policy, uint64_t count, CandidateList* list) {
  if (policy.order == MatchPolicy::Order::kPacked) return list->Take(count, LowerOfLowerId, true);
  const bool low =
      policy.order == MatchPolicy::Order::kLow || policy.order == MatchPolicy::Order::kVariation;
  return low ? list->Take(count, Lower) : list->Take(count, Higher);
}

void OrderSlotParts(const MatchPolicy& policy, Candidates* parts) {
  const bool low = policy.order == MatchPolicy::Order::kLow;
  for (auto& [type, list] : parts->lists) {
    const uint64_t all = list.qualified();
    if (policy.order == MatchPolicy::Order::kPacked) {
      list.Take(all, LowerOfLowerId, true);
    } else {
      low ? list.Take(all, Lower) : list.Take(all, Higher);
    }
  }
}

bool TakeAtRoot(const MatchPolicy& policy,
                const std::vector<RequestLevel>& levels,
                Candidates* found) {
  ScoreRuns runs;
  for (const RequestLevel& level : levels) {
    CandidateList& list = found->Of(level.key());
    const uint64_t count = level.request->count.Best(list.qualified());
    if (count == 0) return false;
    if (policy.order == MatchPolicy::Order::kLocality) {
      runs.Add(list);
      list.Take(count, [&runs](const Candidate& a, const Candidate& b) {
        return runs.RunOf(a.score) > runs.RunOf(b.score);
      });
    } else {
      TakeBest(policy, count, &list);
    }
  }
  return true;
}

}  // namespace fluxqueue::graph
