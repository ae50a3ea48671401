// Random histories of an engine against a brute-force model: the same placements, never more given
// out than there is, and undo, release and restore that lead back exactly. For tests.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include "libs/graph/booked_engine.h"
#include "libs/graph/cluster_model.h"

namespace fluxqueue::graph {

using Random = std::minstd_rand;

inline int64_t Pick(Random& random, int64_t from, int64_t to) {
  return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
}

// Slots, what each needs, constraints that all, half or one of the nodes meet, and levels.
inline Jobspec RandomJobspec(Random& random, bool gpu_parts) {
  std::string with = R"({"type":"cpu","count":)" + std::to_string(Pick(random, 1, 8) * 500) + "}";
  if (random() % 2 == 0) {
    with += R"(,{"type":"memory","count":)" + std::to_string(Pick(random, 1, 9)) + "}";
  }
  if (random() % 4 == 0) with += R"(,{"type":"gpu","count":1})";
  if (random() % 4 == 0 && gpu_parts) {
    const std::vector<int64_t> parts = {100, 300, 500, 1000, 1500, 2000};
    with += R"(,{"type":"fluxqueue.io/gpu-milli","count":)" +
            std::to_string(parts[random() % parts.size()]) + "}";
  }
  if (random() % 30 == 0) with += R"(,{"type":"unheard-of","count":1})";
  const std::string number = R"("n=)" + std::to_string(Pick(random, 0, 40)) + "\"";
  const std::vector<std::string> terms = {R"("properties":[])",
                                          R"("properties":[])",
                                          R"("properties":["half=0"])",
                                          R"("properties":["half"])",
                                          R"("properties":[)" + number + "]",
                                          R"("gt":[)" + number + "]",
                                          R"("lt":[)" + number + "]"};
  const std::string constraints = R"({"and":[{)" + terms[random() % terms.size()] +
                                  R"(},{"tolerations":)" + (random() % 2 == 0 ? "[]" : R"(["t"])") +
                                  "}]}";
  const int64_t slots = random() % 2 == 0 ? 1 : Pick(random, 1, 30);
  const bool one_per_node = slots > 1 && random() % 4 == 0;
  const auto count = [](int64_t of) { return R"("count":)" + std::to_string(of); };
  std::string resources = R"({"type":"slot","label":"s",)" + count(one_per_node ? 1 : slots) +
                          R"(,"with":[)" + with + "]}";
  if (one_per_node) {
    resources = R"({"type":"node",)" + count(slots) + R"(,"with":[)" + resources + "]}";
  }
  const std::vector<std::string> levels = {"", "", "zone", "rack", "room"};
  const std::string& required = levels[random() % levels.size()];
  const std::string& preferred = levels[random() % levels.size()];
  if (!required.empty()) {
    resources = R"({"type":")" + required + R"(","count":1,"with":[)" + resources + "]}";
  }
  const std::string topology =
      preferred.empty() ? "" : R"("topology":{"preferred":")" + preferred + R"("},)";
  const auto spec = ParseJobspec(
      R"({"version":1,"resources":[)" + resources +
      R"(],"tasks":[{"command":["x"],"slot":"s","count":{"per_slot":1}}],"attributes":{"system":{)" +
      topology + R"("constraints":)" + constraints + "}}}");
  RC_ASSERT(spec.ok());
  return *spec;
}

inline NodeSpec RandomNode(Random& random,
                           const std::string& name,
                           uint64_t ordinal,
                           bool gpu_parts) {
  NodeSpec node;
  node.name = name;
  node.uid = "uid-" + std::to_string(ordinal);
  node.ordinal = ordinal;
  node.resources = {{"cpu", Pick(random, 0, 4) * 4000}, {"memory", Pick(random, 1, 40)}};
  if (random() % 3 == 0 && gpu_parts) {
    node.resources.insert(node.resources.begin() + 1,
                          {std::string(kGpuMilli), Pick(random, 0, 7) * 500});
  }
  if (random() % 3 == 0) node.resources.insert(node.resources.end() - 1, {"gpu", 2});
  node.labels = {{"half", std::to_string(ordinal % 2)}, {"n", std::to_string(ordinal)}};
  if (random() % 8 != 0) node.labels.emplace_back("rack", std::to_string(Pick(random, 8, 11)));
  if (random() % 8 != 0) node.labels.emplace_back("zone", random() % 2 == 0 ? "a" : "b");
  if (random() % 8 == 0) node.taints.push_back({"t", "", "NoSchedule"});
  if (random() % 8 == 0) node.taints.push_back({"node.kubernetes.io/x", "", "NoSchedule"});
  node.schedulable = random() % 8 != 0;
  if (random() % 3 == 0) node.foreign = {{"cpu", Pick(random, 0, 6000)}};
  const int64_t gpus = AmountOf(node.resources, std::string(kGpuMilli));
  if (random() % 4 == 0 && gpus > 0) {
    node.foreign.push_back({std::string(kGpuMilli), Pick(random, 1, gpus)});
  }
  return node;
}

// An engine and its model, which go the same steps.
class World {
 public:
  struct Kinds {
    std::vector<std::string> policies;  // the first one to begin with
    bool gpu_parts = true;              // slots ask for GPUs in parts
    bool reserves = false;              // time moves on, jobs end, and cycles reserve
    bool closes = false;                // nodes are closed for a time
  };

  World(MakePlacer make, Kinds kinds)
      : make_(std::move(make)), kinds_(std::move(kinds)), engine_(make_) {
    model_.policy = kinds_.policies.front();
    RC_ASSERT(engine_.SetPolicy(model_.policy).ok());
  }

  void Step(uint32_t seed) {
    Random random(seed);
    random.discard(2);
    if (kinds_.closes && random() % 6 == 0) return Close(random);
    if (kinds_.reserves && random() % 3 == 0) return Cycle(random);
    switch (random() % 15) {
      case 0:
      case 1:
        return AddNodes(random);
      case 2:
        return UpdateNode(random);
      case 3:
        switch (random() % 4) {
          case 0:
            return RemoveNode(random);
          case 1:
            return SetPolicy(random);
          case 2:
            return Expect(random);
          default:
            return SetLevels(random);
        }
      case 4:
        return Release(random);
      case 5:
        return ReleaseSlots(random);
      case 6:
        return Batch(random);
      case 7:
        return MatchGroups(random);
      case 8:
        return Grow(random, /*in_cycle=*/false);
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
    BookedEngine restored(make_);
    RC_ASSERT(restored.SetPolicy(model_.policy).ok());
    RC_ASSERT(restored.SetLevels(model_.levels).ok());
    for (const Jobspec& spec : model_.expected) restored.Expect(spec, 1);
    restored.SetClosures(model_.closures);
    for (const auto& [name, node] : model_.nodes) RC_ASSERT(restored.AddNode(node).ok());
    for (const auto& [key, placement] : model_.held) {
      RC_ASSERT(restored.Restore(key, placement).ok());
    }
    RC_ASSERT(restored.Fingerprint() == engine_.Fingerprint());
    // What it was before does not show in what it answers.
    Random random(1);
    for (int i = 0; i < 5; ++i) {
      const AllocationKey key{"next" + std::to_string(i), 1, 0};
      const Jobspec spec = RandomJobspec(random, kinds_.gpu_parts);
      const MatchRequest request{.key = key, .jobspec = spec, .now_s = model_.now_s};
      const Outcome outcome = engine_.Match(request);
      const Outcome again = restored.Match(request);
      RC_ASSERT(outcome.kind == again.kind);
      if (outcome.placement != nullptr) RC_ASSERT(*outcome.placement == *again.placement);
    }
    for (int i = 0; i < 5; ++i) engine_.Release({"next" + std::to_string(i), 1, 0});
    if (saved_) {
      engine_.Rollback();
      RC_ASSERT(engine_.Fingerprint() == saved_fingerprint_);
    }
  }

 private:
  void AddNodes(Random& random) {
    for (int64_t i = Pick(random, 1, 12); i > 0; --i) {
      const NodeSpec node =
          RandomNode(random, "n" + std::to_string(next_ordinal_), next_ordinal_, kinds_.gpu_parts);
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
    const NodeSpec other = RandomNode(random, node->name, node->ordinal, kinds_.gpu_parts);
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
        changed.labels = {{"half", "0"}, {"rack", "9"}};
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
    model_.policy = kinds_.policies[random() % kinds_.policies.size()];
    RC_ASSERT(engine_.SetPolicy(model_.policy).ok());
  }

  void Expect(Random& random) {
    const bool fewer = !model_.expected.empty() && random() % 3 == 0;
    if (!fewer) model_.expected.push_back(RandomJobspec(random, kinds_.gpu_parts));
    engine_.Expect(model_.expected.back(), fewer ? -1 : 1);
    if (fewer) model_.expected.pop_back();
  }

  void SetLevels(Random& random) {
    const std::vector<std::vector<std::string>> choices = {{}, {"zone"}, {"zone", "room", "rack"}};
    model_.levels = choices[random() % choices.size()];
    RC_ASSERT(engine_.SetLevels(model_.levels).ok());
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
      saved_->now_s = model_.now_s;
      saved_->closures = model_.closures;
      model_ = *std::move(saved_);
      saved_.reset();
      RC_ASSERT(engine_.Fingerprint() == saved_fingerprint_);
    }
  }

  int64_t AnyDuration(Random& random) const {
    return kinds_.reserves && random() % 16 != 0 ? Pick(random, 1, 40) : 0;
  }

  // Some are closed that were open, and others open that were closed; those of one number, of a
  // half, of a rack or all.
  void Close(Random& random) {
    if (!model_.closures.empty() && random() % 2 == 0) {
      const auto one = static_cast<ptrdiff_t>(random() % model_.closures.size());
      model_.closures.erase(model_.closures.begin() + one);
    }
    const std::vector<Constraint> nodes = {
        Constraint::And({}),
        Constraint::HasLabel("half", std::to_string(Pick(random, 0, 1))),
        Constraint::Or({Constraint::IsAnyHost({"n3", "n1"}), Constraint::HasLabel("rack", "9")})};
    for (int64_t i = Pick(random, 0, 2); i > 0; --i) {
      const int64_t from_s = std::max<int64_t>(0, model_.now_s + Pick(random, -5, 40));
      model_.closures.push_back(
          {nodes[random() % nodes.size()], from_s, from_s + Pick(random, 1, 60)});
    }
    engine_.SetClosures(model_.closures);
  }

  // As a matcher's cycle: jobs of a few kinds, one after the other, each now or as early as can be;
  // at the end what is reserved is dropped. Something may be given back meanwhile.
  void Cycle(Random& random) {
    model_.now_s += Pick(random, 0, 15);
    std::vector<Jobspec> kinds;
    for (int i = 0; i < 3; ++i) kinds.push_back(RandomJobspec(random, kinds_.gpu_parts));
    for (int64_t i = Pick(random, 1, 8); i > 0; --i) {
      if (random() % 6 == 0) Release(random);
      if (random() % 4 == 0) Grow(random, /*in_cycle=*/true);
      if (random() % 4 == 0) DropReservation(random);
      const int64_t before_s = random() % 4 == 0 ? model_.now_s + Pick(random, 1, 40) : 0;
      MatchOrReserve(kinds[random() % kinds.size()], AnyDuration(random), before_s, random);
    }
    engine_.DropReservations();
    model_.reserved.clear();
    reserved_.clear();
  }

  // Not what `packed` prefers (packing_test.cc); nor which nodes `first` takes of several below
  // vertices of levels, where it asks each vertex for as many as it lacks.
  bool IsModelled(const Jobspec& spec) const {
    const bool goes_through_levels = model_.policy == "first" && !model_.levels.empty();
    return model_.policy != "packed" && !(spec.one_per_node && goes_through_levels);
  }

  static void CheckOnePerNode(const Jobspec& spec, const std::vector<std::string>& nodes) {
    if (!spec.one_per_node) return;
    RC_ASSERT(std::set<std::string>(nodes.begin(), nodes.end()).size() == nodes.size());
  }

  // And mostly it is made again.
  void DropReservation(Random& random) {
    if (reserved_.empty()) return;
    const auto any = static_cast<ptrdiff_t>(random() % reserved_.size());
    const auto [key, placement] = reserved_[static_cast<size_t>(any)];
    engine_.DropReservation(key);
    if (random() % 3 != 0) {
      RC_ASSERT(engine_.Reserve(key, placement));
    } else {
      reserved_.erase(reserved_.begin() + any);
      model_.reserved.erase(model_.reserved.begin() + any);
    }
  }

  void MatchOrReserve(const Jobspec& spec, int64_t duration_s, int64_t before_s, Random& random) {
    const AllocationKey key{"job" + std::to_string(next_job_++), 1, 0};
    const uint64_t before = engine_.Fingerprint();
    auto expected = model_.MatchOrReserve(spec, duration_s);
    if (expected && before_s != 0 && expected->at_s >= before_s) expected.reset();
    const bool corrected = random() % 2 == 0;
    const int64_t bound_s = random() % 2 == 0 ? 0 : duration_s + Pick(random, 1, 90);
    const Outcome outcome = engine_.Match({.operation = Operation::kAllocateOrReserve,
                                           .key = key,
                                           .jobspec = spec,
                                           .now_s = model_.now_s,
                                           .duration_s = duration_s,
                                           .before_s = before_s,
                                           .corrected = corrected,
                                           .bound_s = bound_s});
    if (expected && expected->at_s == model_.now_s) {
      RC_ASSERT(outcome.kind == OutcomeKind::kAllocated);
      std::vector<std::string> slots;
      for (const PlacedSlot& slot : outcome.placement->slots) slots.push_back(slot.node);
      if (IsModelled(spec)) RC_ASSERT(slots == expected->slots);
      model_.held[key] = *outcome.placement;
      specs_.emplace(key, spec);
      return;
    }
    RC_ASSERT(engine_.Fingerprint() == before);
    if (expected) {
      RC_ASSERT(outcome.kind == OutcomeKind::kReserved);
      RC_ASSERT(outcome.at_s == expected->at_s);
      std::vector<std::string> slots;
      for (const PlacedSlot& slot : outcome.placement->slots) slots.push_back(slot.node);
      model_.reserved.push_back({expected->at_s,
                                 Model::EndOf(expected->at_s, duration_s),
                                 spec.groups[0].request,
                                 std::move(slots)});
      reserved_.emplace_back(key, *outcome.placement);
      return;
    }
    const bool waits = model_.FitsEmpty(spec);
    RC_ASSERT(outcome.waits_for_unending == (waits && before_s == 0));
    RC_ASSERT(outcome.kind == (waits || model_.CouldEverFit(spec) ? OutcomeKind::kBusy
                                                                  : OutcomeKind::kUnsatisfiable));
  }

  // Somebody takes more slots like those that it has: where a job of so many would go.
  void Grow(Random& random, bool in_cycle) {
    const AllocationKey* any = AnyKey(random);
    const auto known = any == nullptr ? specs_.end() : specs_.find(*any);
    if (known == specs_.end()) return;
    const AllocationKey key = *any;
    Placement& held = model_.held[key];
    const auto more = static_cast<uint32_t>(Pick(random, 1, 6));
    const Jobspec spec = WithSlots(known->second, more);
    const bool over = held.duration_s != 0 && held.start_s + held.duration_s <= model_.now_s;
    const int64_t left_s = held.duration_s == 0 ? 0 : held.start_s + held.duration_s - model_.now_s;
    std::optional<std::vector<std::string>> expected;
    if (in_cycle && !over) {
      const auto planned = model_.MatchOrReserve(spec, left_s);
      if (planned && planned->at_s == model_.now_s) expected = planned->slots;
    } else if (!over) {
      model_.asked_s = left_s;
      expected = model_.Match(spec);
    }
    const uint64_t before = engine_.Fingerprint();
    const Outcome outcome =
        engine_.Grow({.key = key, .jobspec = spec, .now_s = model_.now_s, .duration_s = 0});
    RC_ASSERT((outcome.kind == OutcomeKind::kAllocated) == expected.has_value());
    if (!expected) {
      RC_ASSERT(outcome.kind == OutcomeKind::kBusy);
      RC_ASSERT(engine_.Fingerprint() == before);
      return;
    }
    Placement grown = *outcome.placement;
    RC_ASSERT(grown.groups[0].slots == held.groups[0].slots + more);
    std::vector<std::string> nodes;
    for (size_t i = held.slots.size(); i < grown.slots.size(); ++i) {
      RC_ASSERT(grown.slots[i].slot == i);
      nodes.push_back(grown.slots[i].node);
    }
    if (IsModelled(spec)) RC_ASSERT(nodes == *expected);
    CheckOnePerNode(spec, nodes);
    RC_ASSERT(nodes.size() == more);
    held = std::move(grown);
    for (const std::string& name : nodes) CheckWithinSize(name, spec.groups[0].request);
  }

  void Match(Random& random) {
    const Jobspec spec = RandomJobspec(random, kinds_.gpu_parts);
    const int64_t duration_s = AnyDuration(random);
    const int64_t now_s = model_.now_s;
    const AllocationKey key{"job" + std::to_string(next_job_++), 1, 0};
    model_.asked_s = duration_s;
    const auto expected = model_.Match(spec);
    const uint64_t before = engine_.Fingerprint();
    const MatchRequest request{.key = key,
                               .jobspec = spec,
                               .now_s = now_s,
                               .duration_s = duration_s,
                               .corrected = random() % 2 == 0,
                               .bound_s = random() % 2 == 0 ? 0 : duration_s + 60};
    const Outcome outcome = engine_.Match(request);
    if (!expected) {
      RC_ASSERT(outcome.kind ==
                (model_.CouldEverFit(spec) ? OutcomeKind::kBusy : OutcomeKind::kUnsatisfiable));
      RC_ASSERT(engine_.Fingerprint() == before);
      if (model_.closures.empty()) CheckExplanation(spec);
      return;
    }
    RC_ASSERT(outcome.kind == OutcomeKind::kAllocated);
    std::vector<std::string> slots;
    for (const PlacedSlot& slot : outcome.placement->slots) slots.push_back(slot.node);
    const Placement placement = *outcome.placement;
    CheckOnePerNode(spec, slots);
    if (IsModelled(spec)) {
      RC_ASSERT(slots == *expected);
      CheckDevices(placement);
    }
    // Released, all is as before; matched again, the answer is the same; asked twice, too.
    RC_ASSERT(engine_.Release(key));
    RC_ASSERT(engine_.Fingerprint() == before);
    RC_ASSERT(*engine_.Match(request).placement == placement);
    RC_ASSERT(*engine_.Match({.key = key, .jobspec = spec, .now_s = now_s + 2}).placement ==
              placement);
    model_.held[key] = placement;
    specs_.emplace(key, spec);
    for (const std::string& name : slots) CheckWithinSize(name, placement.groups[0].request);
  }

  // Of a placement that is not in the model yet: the slots have the devices that they would get
  // there, one slot after the other.
  void CheckDevices(const Placement& placement) {
    const DevicesPerSlot wanted = Model::DevicesOf(placement.groups[0]);
    std::map<std::string, std::vector<uint32_t>> got;
    for (const PlacedSlot& slot : placement.slots) {
      RC_ASSERT(slot.devices.size() == wanted.devices);
      std::vector<uint32_t>& of_node = got[slot.node];
      of_node.insert(of_node.end(), slot.devices.begin(), slot.devices.end());
    }
    for (auto& [name, devices] : got) {
      if (wanted.devices == 0) continue;
      std::vector<uint32_t> expected = model_.Devices(model_.nodes.at(name), wanted);
      expected.resize(devices.size());
      std::sort(expected.begin(), expected.end());
      RC_ASSERT(devices == expected);
    }
  }

  // A leader and its workers: not which nodes they get, but that they are all there or none.
  void MatchGroups(Random& random) {
    const Jobspec workers = RandomJobspec(random, kinds_.gpu_parts);
    Jobspec spec = RandomJobspec(random, kinds_.gpu_parts);
    spec.groups.insert(spec.groups.begin(), {1, workers.groups[0].request});
    spec.slots += 1;
    spec.one_per_node = false;
    spec.shape += " led by " + workers.shape;
    const AllocationKey key{"job" + std::to_string(next_job_++), 1, 0};
    const uint64_t before = engine_.Fingerprint();
    const Outcome outcome = engine_.Match({.key = key, .jobspec = spec, .now_s = model_.now_s});
    if (outcome.kind != OutcomeKind::kAllocated) {
      RC_ASSERT(engine_.Fingerprint() == before);
      RC_ASSERT(!engine_.Explain(spec, Wording::kShort).sentence.empty());
      return;
    }
    const Placement placement = *outcome.placement;
    RC_ASSERT(placement.slots.size() == spec.slots);
    RC_ASSERT(placement.groups == spec.groups);
    RC_ASSERT(engine_.Release(key));
    RC_ASSERT(engine_.Fingerprint() == before);
    RC_ASSERT(*engine_.Match({.key = key, .jobspec = spec, .now_s = model_.now_s}).placement ==
              placement);
    model_.held[key] = placement;
    const std::vector<size_t> ways = model_.Ways(spec);
    const std::vector<Level> in_use = model_.LevelsInUse();
    std::set<std::string> vertices;
    for (const PlacedSlot& slot : placement.slots) {
      const NodeSpec& node = model_.nodes.at(slot.node);
      RC_ASSERT(node.schedulable && spec.constraint.Matches(node));
      vertices.insert(GroupOf(node, std::span(in_use).first(ways.back())));
      for (const SlotGroup& group : placement.groups) CheckWithinSize(slot.node, group.request);
    }
    RC_ASSERT(vertices.size() == 1u);
  }

  void CheckExplanation(const Jobspec& spec) {
    const Explanation why = engine_.Explain(spec, Wording::kShort);
    RC_ASSERT(!why.sentence.empty());
    RC_ASSERT(why.slots_now < spec.slots);
    RC_ASSERT((why.slots_ever < spec.slots) == !model_.CouldEverFit(spec));
  }

  void CheckWithinSize(const std::string& name, const Amounts& requests) {
    const NodeSpec& node = model_.nodes.at(name);
    for (const Amount& amount : requests) {
      const int64_t held = model_.HeldOn(name, amount.resource);
      if (held == 0) continue;
      RC_ASSERT(held + AmountOf(node.foreign, amount.resource) <=
                AmountOf(node.resources, amount.resource));
    }
  }

  MakePlacer make_;
  Kinds kinds_;
  BookedEngine engine_;
  Model model_;
  std::map<AllocationKey, Jobspec> specs_;  // of those whose slots are alike
  std::optional<Model> saved_;
  uint64_t saved_fingerprint_ = 0;
  uint64_t next_ordinal_ = 0;
  // As in model_.reserved.
  std::vector<std::pair<AllocationKey, Placement>> reserved_;
  int next_job_ = 0;
};

}  // namespace fluxqueue::graph
