// How changes of the booked engine are taken back.
#include <set>
#include <utility>

#include "libs/base/check.h"
#include "libs/graph/booked_engine.h"

namespace fluxqueue::graph {

void BookedEngine::Record(Undo undo) {
  if (recording_) journal_.push_back(std::move(undo));
}

void BookedEngine::Checkpoint() {
  CHECK(!recording_, "Checkpoint within a checkpoint");
  recording_ = true;
}

void BookedEngine::Commit() {
  recording_ = false;
  journal_.clear();
}

void BookedEngine::Rollback() {
  recording_ = false;
  while (!journal_.empty()) {
    std::visit([this](auto& undo) { TakeBack(undo); }, journal_.back());
    journal_.pop_back();
  }
}

void BookedEngine::TakeBack(UndoPolicy& undo) {
  CHECK(placer_->SetPolicy(undo.before).ok());
}

void BookedEngine::TakeBack(UndoLevels& undo) {
  table_.SetLevels(std::move(undo.before));
  placer_->LevelsChanged();
}

void BookedEngine::TakeBack(UndoExpect& undo) {
  expected_.Add(undo.jobspec, -undo.jobs);
}

void BookedEngine::TakeBack(UndoForecast& undo) {
  expected_.SetForecast(std::move(undo.before));
}

void BookedEngine::TakeBack(UndoHeed& undo) {
  heeds_preferences_ = undo.before;
}

void BookedEngine::TakeBack(UndoAdd& undo) {
  const std::unique_ptr<Node> node = table_.Take(table_.Find(undo.name));
  placer_->Remove(node.get());
}

void BookedEngine::TakeBack(UndoUpdate& undo) {
  Node* node = table_.Find(undo.before.name);
  NodeSpec replaced = node->spec;
  table_.Replace(node, std::move(undo.before));
  UpdateInPlacer(node, replaced);
}

void BookedEngine::TakeBack(UndoRemove& undo) {
  Node* node = undo.node.get();
  table_.PutBack(std::move(undo.node));
  placer_->Add(node);
  std::set<AllocationKey> keys;
  for (const auto& [key, slot] : undo.slots) {
    Allocation& allocation = allocations_.at(key);
    allocation.nodes[slot] = node;
    allocation.placement.slots[slot].released = false;
    HoldSlot(allocation, slot, node, 1);
    keys.insert(key);
  }
  for (const AllocationKey& key : keys) HoldInPlacer(allocations_.at(key));
  placer_->Reorder(node);
}

void BookedEngine::TakeBack(UndoAllocate& undo) {
  const auto found = allocations_.find(undo.key);
  HoldLive(found->second, -1);
  Unplan(found->second);
  allocations_.erase(found);
}

void BookedEngine::TakeBack(UndoRelease& undo) {
  Allocation& held = allocations_.emplace(undo.key, std::move(undo.allocation)).first->second;
  Plan(undo.key, held);
  HoldLive(held, 1);
}

void BookedEngine::TakeBack(UndoExtend& undo) {
  Replan(undo.key, &allocations_.at(undo.key), undo.before);
}

void BookedEngine::TakeBack(UndoReleaseSlots& undo) {
  Allocation& allocation = allocations_.at(undo.key);
  for (const auto& [slot, node] : undo.slots) {
    allocation.nodes[slot] = node;
    allocation.placement.slots[slot].released = false;
    HoldSlot(allocation, slot, node, 1);
    placer_->Reorder(node);
  }
  HoldInPlacer(allocation);
}

}  // namespace fluxqueue::graph
