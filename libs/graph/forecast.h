// Which slots with GPUs are to come, by those that came: the workload that `packed` keeps GPUs of
// use for (packing.h), by rules from 6 on (libs/model/rules.h).
//
// What came counts less the more has come since and the longer ago it was: all counts are halved
// when they are of more than kMostSlots slots together, and each day. No tenant steers what is kept
// for all others: where more than kMostSlotsOfTenant slots of one count, the tenant's counts alone
// are halved, and of its shapes the kMostShapesOfTenant are remembered that want most gpus
// together.
//
// Counts change in steps: what has come waits until it is an eighth of what counts already. So for
// most arrivals the workload stays as it was, and so does what the engine has indexed by it.
//
// It follows from what came, in which order and when. Whole numbers only. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libs/graph/jobspec.h"
#include "libs/graph/workload.h"

namespace fluxqueue::graph {

class Forecast {
 public:
  static constexpr uint64_t kMostSlots = 8192;
  static constexpr uint64_t kMostSlotsOfTenant = kMostSlots / 4;
  static constexpr size_t kMostShapesOfTenant = 128;
  static constexpr size_t kMostShapes = 256;  // of Shapes()
  // A shape whose constraint is longer, as JSON, is not remembered; nor is one of more gpus.
  static constexpr size_t kMostConstraintBytes = 4096;
  static constexpr int64_t kMostGpusOfSlot = 64;
  static constexpr int64_t kHalfLifeS = int64_t{24} * 3600;
  // A slot that has just come counts so much, so that it is halved a few times before it is 0.
  static constexpr uint64_t kOneSlot = 16;

  // A tenant's slots of a shape, times kOneSlot.
  struct Share {
    uint64_t counts = 0;
    uint64_t coming = 0;  // counts with the next step

    friend bool operator==(const Share&, const Share&) = default;
  };
  struct Remembered {
    WorkloadShape shape;  // its count is not looked at
    std::map<std::string, Share, std::less<>> by_tenant;
  };

  // At `now_s`, by a clock that does not go back. Slots without gpus change nothing.
  void Arrive(std::string_view tenant, const Jobspec& jobspec, int64_t now_s);
  // `shape.count` slots.
  void Arrive(std::string_view tenant, const WorkloadShape& shape, int64_t now_s);

  // Whether Shapes() may be another than at the last call of Shapes().
  bool changed() const { return changed_; }
  // At most kMostShapes: those that want most gpus together.
  Workload Shapes();

  // For rows. A forecast that is restored from both goes on as this one does.
  std::vector<Remembered> remembered() const;
  int64_t halved_s() const { return halved_s_; }
  static Forecast Restore(std::vector<Remembered> remembered, int64_t halved_s);

 private:
  void Age(int64_t now_s);
  void TakeUp();
  void LimitTenants();
  uint64_t CountsOf(std::string_view tenant) const;
  // `most` of its shapes: those that want fewest gpus together.
  void ForgetLeast(std::string_view tenant, size_t most);
  void Halve(const std::function<bool(std::string_view tenant)>& whose);

  // By what a slot asks for and where it may go.
  std::map<std::string, Remembered> shapes_;
  // Sums over shapes_.
  uint64_t counts_ = 0;
  uint64_t coming_ = 0;
  int64_t halved_s_ = 0;
  bool changed_ = false;
};

}  // namespace fluxqueue::graph
