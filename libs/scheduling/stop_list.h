// Whom a cycle names as those that may be stopped, for all of its preemptors together: which of
// them for whom (victims.h has the rules), what is lost by it, and what queues with a guarantee can
// spare. Who of them is stopped is the matcher's choice, as it knows who is where.
//
// Of one preemptor a job is listed when it may be stopped alone, or give a slot back. Several that
// are reclaimed must be spared together: each lender that counts for the preemptor says how much
// its jobs may lose. Any choice within that is one that VictimRules allows, taken job by job in any
// order.
//
// A list has at most `most` jobs: first those that are being stopped, whose room comes free anyway.
// What is left is shared out evenly among the preemptors, those with the fewest first. When more
// may be stopped for one than its share, half of it is those that lose least, and the other half
// goes on from list to list through all others, by `turn`: so each has its turn, wherever it runs.
//
//   lost = seconds that it ran × its dominant share of the pool in parts of 2^30
//
// In whole numbers, as it stands in the log. Then the latest start goes first, then the id. Pure.
// O(jobs · log jobs + preemptors · jobs · depth).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "libs/scheduling/victims.h"

namespace fluxqueue::scheduling {

inline constexpr size_t kMostStoppable = 4096;

struct StopList {
  struct Stoppable {
    size_t job = 0;  // its place among those that hold something
    int64_t lost = 0;
    std::optional<size_t> lender;  // the first on the way up from its queue
  };
  struct Lender {
    const QueueNode* queue = nullptr;
    // Without what is being stopped, in the order of HoldsOf. VictimRules::kNoGuarantee: no bound.
    std::vector<int64_t> spare;
    std::optional<size_t> above;
  };
  // Of one preemptor: places in the lists below, rising.
  struct Choice {
    std::vector<size_t> stoppable;
    std::vector<size_t> lenders;
  };
  std::vector<Choice> choices;
  std::vector<Stoppable> stoppable;
  std::vector<Lender> lenders;
  // Resources beside cpu, memory and gpu of which lenders spare some and jobs hold some. Sorted.
  std::vector<std::string> others;

  // Of cpu, memory, gpu and the others.
  std::vector<int64_t> HoldsOf(const Resources& amounts) const;
};

// Sorts once; then each Add is O(jobs · depth).
class StopListMaker {
 public:
  // Empty capacity: not known. `holding` must outlive the maker.
  StopListMaker(const std::vector<HoldingJob>& holding, const Resources& capacity, int64_t now_ms);

  // The next preemptor. False: no job may be stopped for it, nor is being stopped, and it has no
  // choice.
  bool Add(const Preemptor& preemptor, const Ahead& ahead);
  // A choice for each preemptor that was added, in that order.
  StopList Make(uint64_t turn, size_t most = kMostStoppable) const;

 private:
  struct Ranked {
    size_t job = 0;
    int64_t lost = 0;
  };
  // Of one preemptor.
  struct Eligible {
    Preemptor preemptor;
    std::vector<size_t> ranks;  // in ranked_, rising
    std::vector<size_t> reclaimed;
  };

  // Which of ranked_ are listed.
  std::vector<bool> Share(uint64_t turn, size_t most) const;
  void AddLenders(StopList* list) const;
  // Where several lenders count, by name and by what counts of them.
  using LenderKey = std::tuple<std::string_view, uint32_t, std::vector<std::string_view>>;
  using LenderMap = std::map<LenderKey, VictimRules::Lender>;
  void NameOthers(const LenderMap& lenders, StopList* list) const;

  const std::vector<HoldingJob>& holding_;
  std::vector<Ranked> ranked_;  // those being stopped, then by loss
  size_t stopping_ = 0;         // how many of them
  std::vector<Eligible> eligible_;
};

}  // namespace fluxqueue::scheduling
