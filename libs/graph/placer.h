// Where the slots of a job go, and whatever that is decided on. The books, by name and with undo,
// are kept by the engine that asks it (booked_engine.h): what a placer knows follows from them, and
// can be made anew at any time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libs/graph/closure.h"
#include "libs/graph/expected_work.h"
#include "libs/graph/graph_state.h"
#include "libs/graph/holding.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/node_table.h"

#include "absl/status/status.h"

namespace fluxqueue::graph {

class Placer {
 public:
  // Equal slots on one node.
  struct Share {
    Node* node = nullptr;
    uint32_t group = 0;  // of the jobspec's slots
    int64_t slots = 0;
    // Of one slot after the other, when they ask for GPUs in parts.
    std::vector<uint32_t> devices = {};
  };
  using Shares = std::vector<Share>;

  static constexpr int64_t kNever = kForever;

  struct When {
    int64_t now_s = 0;
    int64_t duration_s = 0;  // 0: unlimited
    bool may_reserve = false;
    int64_t before_s = kNever;  // nothing is reserved from then on or later
  };
  struct Place {
    Shares shares;
    // After now: reserved. kNever: it would have to wait for what is held without an end (said only
    // of what may be reserved whenever it can be); nothing is reserved.
    int64_t at_s = 0;
  };

  virtual ~Placer() = default;

  // InvalidArgument, with the names that are known.
  virtual absl::Status SetPolicy(std::string_view policy) = 0;
  virtual const std::string& policy() const = 0;
  // The table has others.
  virtual void LevelsChanged() = 0;

  // The node has come, has changed (all but its name and ordinal), has been taken out of the table.
  // After a change what is held on the node may be lost, and is to be held again: Update then says
  // true.
  virtual void Add(Node* node) = 0;
  virtual bool Update(Node* node, const NodeSpec& before) = 0;
  virtual void Remove(Node* node) = 0;
  // What is free on it has changed.
  virtual void Reorder(Node* node) = 0;

  // To be made anew, and then all that is held to be held again, before the next Match or
  // CouldEver.
  virtual bool is_stale() const = 0;
  virtual void Rebuild() = 0;

  // Holds all slots of the jobspec as jobs `first` … `first` + groups − 1; or none. The shares of
  // each group follow on each other, in the policy's order, which keeps those of one zone or rack
  // together. What is given now takes nothing of what is reserved.
  virtual std::optional<Place> Match(JobNumber first, const Jobspec& jobspec, const When& when) = 0;
  // The same jobspec with what it takes here, where that is more than it asks for; and a remark for
  // people about that, or nothing.
  virtual Jobspec AsTaken(const Jobspec& jobspec) const = 0;
  virtual std::string_view remark() const = 0;
  // Whether it would fit if all nodes were up and nothing were held.
  virtual bool CouldEver(const Jobspec& jobspec) = 0;

  // When shares are held: until they are released, which is planned for `end_s` (0: not planned).
  struct Span {
    // Reserved, from then on. 0: held now.
    int64_t reserved_s = 0;
    int64_t end_s = 0;
  };
  // Holds these shares, whether or not they fit, in place of what the jobs from `first` on held.
  // `needs`: of a slot, by group. Nothing when it is stale: see Rebuild.
  virtual void Hold(JobNumber first,
                    const Shares& shares,
                    std::span<const std::vector<Need>> needs,
                    const Span& span) = 0;
  // What these jobs hold is planned to be released then. Nothing when it is stale.
  virtual void Replan(JobNumber first, size_t groups, int64_t end_s) = 0;
  virtual void Release(JobNumber first, size_t groups) = 0;

  // In their time these nodes, and no others, get nothing from Match; to Hold and CouldEver it
  // makes no difference. To be said again when nodes have come or changed, and after Rebuild.
  virtual void SetClosures(const std::vector<Closure>& closures) = 0;
};

// Both must outlive it; where the table's nodes are may be written to them.
using MakePlacer = std::function<std::unique_ptr<Placer>(NodeTable* table, ExpectedWork* expected)>;

}  // namespace fluxqueue::graph
