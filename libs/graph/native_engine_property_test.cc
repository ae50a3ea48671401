// Random histories against a brute-force model: the same placements, never more given out than
// there is, and undo, release and restore that lead back exactly.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "libs/graph/native_engine.h"

namespace fluxqueue::graph {
namespace {

using Random = std::minstd_rand;

int64_t Pick(Random& random, int64_t from, int64_t to) {
  return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
}

std::string Quoted(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "\"" : ",\"") + text + "\"";
  return "[" + list + "]";
}

// Slots, what each needs, and constraints that all, half or one of the nodes meet.
Jobspec RandomJobspec(Random& random) {
  std::string with = R"({"type":"cpu","count":)" + std::to_string(Pick(random, 1, 8) * 500) + "}";
  if (random() % 2 == 0) {
    with += R"(,{"type":"memory","count":)" + std::to_string(Pick(random, 1, 9)) + "}";
  }
  if (random() % 4 == 0) with += R"(,{"type":"gpu","count":1})";
  if (random() % 30 == 0) with += R"(,{"type":"unheard-of","count":1})";
  const std::vector<std::vector<std::string>> properties = {
      {}, {}, {"half=0"}, {"half"}, {"n=" + std::to_string(Pick(random, 0, 40))}};
  const std::string constraints =
      R"({"and":[{"properties":)" + Quoted(properties[random() % properties.size()]) +
      R"(},{"tolerations":)" + (random() % 2 == 0 ? "[]" : R"(["t"])") + "}]}";
  const int64_t slots = random() % 2 == 0 ? 1 : Pick(random, 1, 30);
  const auto spec = ParseJobspec(
      R"({"version":1,"resources":[{"type":"slot","label":"s","count":)" + std::to_string(slots) +
      R"(,"with":[)" + with +
      R"(]}],"tasks":[{"command":["x"],"slot":"s","count":{"per_slot":1}}],"attributes":{"system":{"constraints":)" +
      constraints + "}}}");
  RC_ASSERT(spec.ok());
  return *spec;
}

NodeSpec RandomNode(Random& random, const std::string& name, uint64_t ordinal) {
  NodeSpec node;
  node.name = name;
  node.uid = "uid-" + std::to_string(ordinal);
  node.ordinal = ordinal;
  node.resources = {{"cpu", Pick(random, 0, 4) * 4000}, {"memory", Pick(random, 1, 40)}};
  if (random() % 3 == 0) node.resources.insert(node.resources.begin() + 1, {"gpu", 2});
  node.labels = {{"half", std::to_string(ordinal % 2)}, {"n", std::to_string(ordinal)}};
  if (random() % 8 == 0) node.taints.push_back({"t", "", "NoSchedule"});
  if (random() % 8 == 0) node.taints.push_back({"node.kubernetes.io/x", "", "NoSchedule"});
  node.schedulable = random() % 8 != 0;
  if (random() % 3 == 0) node.foreign = {{"cpu", Pick(random, 0, 6000)}};
  return node;
}

int64_t AmountOf(const Amounts& amounts, const std::string& resource) {
  for (const Amount& amount : amounts) {
    if (amount.resource == resource) return amount.amount;
  }
  return 0;
}

// The definition, without any index.
struct Model {
  std::string policy = "first";
  std::map<std::string, NodeSpec> nodes;
  std::map<AllocationKey, Placement> held;

  int64_t HeldOn(const std::string& node, const std::string& resource) const {
    int64_t sum = 0;
    for (const auto& [key, placement] : held) {
      for (const PlacedSlot& slot : placement.slots) {
        if (!slot.released && slot.node == node) sum += AmountOf(placement.requests, resource);
      }
    }
    return sum;
  }

  bool Touched(const std::string& node) const {
    for (const auto& [key, placement] : held) {
      for (const PlacedSlot& slot : placement.slots) {
        if (!slot.released && slot.node == node) return true;
      }
    }
    return false;
  }

  int64_t FreeOf(const NodeSpec& node, const std::string& resource) const {
    return std::max<int64_t>(0,
                             AmountOf(node.resources, resource) - AmountOf(node.foreign, resource) -
                                 HeldOn(node.name, resource));
  }

  std::vector<const NodeSpec*> InOrder() const {
    std::vector<std::tuple<int64_t, int64_t, const NodeSpec*>> ranked;
    for (const auto& [name, node] : nodes) {
      const auto ordinal = static_cast<int64_t>(node.ordinal);
      if (policy == "first") {
        ranked.emplace_back(Touched(name) ? -FreeOf(node, "cpu") : INT64_MIN, -ordinal, &node);
      } else {
        ranked.emplace_back(0, policy == "lonode" ? ordinal : -ordinal, &node);
      }
    }
    std::sort(ranked.begin(), ranked.end());
    std::vector<const NodeSpec*> order;
    for (const auto& [a, b, node] : ranked) order.push_back(node);
    return order;
  }

  // The nodes of the slots, or nothing.
  std::optional<std::vector<std::string>> Match(const Jobspec& spec) const {
    std::vector<std::string> slots;
    for (const NodeSpec* node : InOrder()) {
      if (!node->schedulable || !spec.constraint.Matches(*node)) continue;
      if (FirstUntolerated(node->taints, spec.tolerations, false) != nullptr) continue;
      int64_t fit = INT64_MAX;
      for (const Amount& need : spec.request) {
        fit = std::min(fit, FreeOf(*node, need.resource) / need.amount);
      }
      while (fit-- > 0 && slots.size() < spec.slots) slots.push_back(node->name);
    }
    if (slots.size() < spec.slots) return std::nullopt;
    return slots;
  }

  bool CouldEverFit(const Jobspec& spec) const {
    int64_t slots = 0;
    for (const auto& [name, node] : nodes) {
      if (!spec.constraint.Matches(node)) continue;
      if (FirstUntolerated(node.taints, spec.tolerations, true) != nullptr) continue;
      int64_t fit = INT64_MAX;
      for (const Amount& need : spec.request) {
        fit = std::min(fit, AmountOf(node.resources, need.resource) / need.amount);
      }
      slots += fit;
    }
    return slots >= static_cast<int64_t>(spec.slots);
  }
};

class World {
 public:
  void Step(uint32_t seed) {
    Random random(seed);
    random.discard(2);
    switch (random() % 14) {
      case 0:
      case 1:
        return AddNodes(random);
      case 2:
        return UpdateNode(random);
      case 3:
        return random() % 2 == 0 ? RemoveNode(random) : SetPolicy(random);
      case 4:
        return Release(random);
      case 5:
        return ReleaseSlots(random);
      case 6:
        return Batch(random);
      default:
        return Match(random);
    }
  }

  // The engine's books are the model's, and no node gives out what it has not.
  void Check() {
    RC_ASSERT(engine_.nodes() == model_.nodes.size());
    RC_ASSERT(engine_.allocations() == model_.held.size());
    for (const NodeUsage& usage : engine_.UsageByNode()) {
      const NodeSpec& node = model_.nodes.at(usage.name);
      for (const ResourceUsage& one : usage.resources) {
        RC_ASSERT(one.held == model_.HeldOn(node.name, one.resource));
        RC_ASSERT(one.free == (node.schedulable ? model_.FreeOf(node, one.resource) : 0));
      }
    }
    for (const auto& [key, placement] : model_.held) RC_ASSERT(*engine_.Find(key) == placement);
  }

  // An engine made anew from what is known is the same engine.
  void CheckRestored() {
    NativeEngine restored;
    RC_ASSERT(restored.SetPolicy(model_.policy).ok());
    for (const auto& [name, node] : model_.nodes) RC_ASSERT(restored.AddNode(node).ok());
    for (const auto& [key, placement] : model_.held) {
      RC_ASSERT(restored.Restore(key, placement).ok());
    }
    RC_ASSERT(restored.Fingerprint() == engine_.Fingerprint());
    if (saved_) {
      engine_.Rollback();
      RC_ASSERT(engine_.Fingerprint() == saved_fingerprint_);
    }
  }

 private:
  void AddNodes(Random& random) {
    for (int64_t i = Pick(random, 1, 12); i > 0; --i) {
      const NodeSpec node = RandomNode(random, "n" + std::to_string(next_ordinal_), next_ordinal_);
      ++next_ordinal_;
      RC_ASSERT(engine_.AddNode(node).ok());
      RC_ASSERT(!engine_.AddNode(node).ok());
      model_.nodes[node.name] = node;
    }
  }

  NodeSpec* AnyNode(Random& random) {
    if (model_.nodes.empty()) return nullptr;
    auto node = model_.nodes.begin();
    std::advance(node, random() % model_.nodes.size());
    return &node->second;
  }

  void UpdateNode(Random& random) {
    NodeSpec* node = AnyNode(random);
    if (node == nullptr) return;
    NodeSpec changed = *node;
    const NodeSpec other = RandomNode(random, node->name, node->ordinal);
    switch (random() % 4) {
      case 0:
        changed.resources = other.resources;
        break;
      case 1:
        changed.foreign = other.foreign;
        break;
      case 2:
        changed.schedulable = !changed.schedulable;
        break;
      default:
        changed.taints = other.taints;
        changed.labels = {{"half", "0"}};
    }
    const auto change = engine_.UpdateNode(changed);
    RC_ASSERT(change.ok());
    RC_ASSERT(change->changed == !(changed == *node));
    *node = changed;
  }

  void RemoveNode(Random& random) {
    const NodeSpec* node = AnyNode(random);
    if (node == nullptr) return;
    const std::string name = node->name;
    std::vector<AllocationKey> broken;
    for (auto& [key, placement] : model_.held) {
      bool any = false;
      for (PlacedSlot& slot : placement.slots) {
        if (slot.node != name || slot.released) continue;
        slot.released = any = true;
      }
      if (any) broken.push_back(key);
    }
    const auto said = engine_.RemoveNode(name);
    RC_ASSERT(said.ok());
    RC_ASSERT(*said == broken);
    RC_ASSERT(!engine_.RemoveNode(name).ok());
    model_.nodes.erase(name);
  }

  void SetPolicy(Random& random) {
    model_.policy = std::vector<std::string>{"first", "lonode", "hinode"}[random() % 3];
    RC_ASSERT(engine_.SetPolicy(model_.policy).ok());
  }

  const AllocationKey* AnyKey(Random& random) {
    if (model_.held.empty()) return nullptr;
    auto held = model_.held.begin();
    std::advance(held, random() % model_.held.size());
    return &held->first;
  }

  void Release(Random& random) {
    if (const AllocationKey* any = AnyKey(random); any != nullptr) {
      const AllocationKey key = *any;
      RC_ASSERT(engine_.Release(key));
      RC_ASSERT(!engine_.Release(key));
      model_.held.erase(key);
    }
  }

  void ReleaseSlots(Random& random) {
    const AllocationKey* key = AnyKey(random);
    if (key == nullptr) return;
    Placement& placement = model_.held[*key];
    const uint32_t slot = static_cast<uint32_t>(random() % (placement.slots.size() + 1));
    std::vector<uint32_t> expected;
    if (slot < placement.slots.size() && !placement.slots[slot].released) {
      placement.slots[slot].released = true;
      expected.push_back(slot);
    }
    RC_ASSERT(engine_.ReleaseSlots(*key, {slot, slot}) == expected);
  }

  void Batch(Random& random) {
    if (!saved_) {
      engine_.Checkpoint();
      saved_ = model_;
      saved_fingerprint_ = engine_.Fingerprint();
    } else if (random() % 2 == 0) {
      engine_.Commit();
      saved_.reset();
    } else {
      engine_.Rollback();
      model_ = *std::move(saved_);
      saved_.reset();
      RC_ASSERT(engine_.Fingerprint() == saved_fingerprint_);
    }
  }

  void Match(Random& random) {
    const Jobspec spec = RandomJobspec(random);
    const AllocationKey key{"job" + std::to_string(next_job_++), 1, 0};
    const auto expected = model_.Match(spec);
    const uint64_t before = engine_.Fingerprint();
    const Outcome outcome = engine_.Match({.key = key, .jobspec = spec, .now_s = 7});
    if (!expected) {
      RC_ASSERT(outcome.kind ==
                (model_.CouldEverFit(spec) ? OutcomeKind::kBusy : OutcomeKind::kUnsatisfiable));
      RC_ASSERT(engine_.Fingerprint() == before);
      CheckExplanation(spec);
      return;
    }
    RC_ASSERT(outcome.kind == OutcomeKind::kAllocated);
    std::vector<std::string> slots;
    for (const PlacedSlot& slot : outcome.placement->slots) slots.push_back(slot.node);
    RC_ASSERT(slots == *expected);
    const Placement placement = *outcome.placement;
    // Released, all is as before; matched again, the answer is the same; asked twice, too.
    RC_ASSERT(engine_.Release(key));
    RC_ASSERT(engine_.Fingerprint() == before);
    RC_ASSERT(*engine_.Match({.key = key, .jobspec = spec, .now_s = 7}).placement == placement);
    RC_ASSERT(*engine_.Match({.key = key, .jobspec = spec, .now_s = 9}).placement == placement);
    model_.held[key] = placement;
    for (const std::string& name : slots) CheckWithinSize(name, placement.requests);
  }

  void CheckExplanation(const Jobspec& spec) {
    const Explanation why = engine_.Explain(spec);
    RC_ASSERT(!why.sentence.empty());
    RC_ASSERT(why.slots_now < spec.slots);
    RC_ASSERT((why.slots_ever < spec.slots) == !model_.CouldEverFit(spec));
  }

  void CheckWithinSize(const std::string& name, const Amounts& requests) {
    const NodeSpec& node = model_.nodes.at(name);
    for (const Amount& amount : requests) {
      RC_ASSERT(model_.HeldOn(name, amount.resource) + AmountOf(node.foreign, amount.resource) <=
                AmountOf(node.resources, amount.resource));
    }
  }

  NativeEngine engine_;
  Model model_;
  std::optional<Model> saved_;
  uint64_t saved_fingerprint_ = 0;
  uint64_t next_ordinal_ = 0;
  int next_job_ = 0;
};

TEST(NativeEngineProperties, EqualsTheModel) {
  EXPECT_TRUE(rc::check("random histories", [](const std::vector<uint32_t>& steps) {
    World world;
    world.Step(0);
    for (const uint32_t step : steps) {
      world.Step(step);
      world.Check();
    }
    world.CheckRestored();
  }));
}

TEST(NativeEngineProperties, EqualsTheModelOverLongHistories) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    World world;
    for (int i = 0; i < 200; ++i) world.Step(static_cast<uint32_t>(random()));
    world.Check();
    world.CheckRestored();
  }
}

}  // namespace
}  // namespace fluxqueue::graph
