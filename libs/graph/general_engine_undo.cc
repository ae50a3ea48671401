// How changes of the general engine are taken back, and how its states are told apart.
#include <utility>

#include "libs/graph/fnv.h"
#include "libs/graph/general_engine.h"

namespace fluxqueue::graph {

void GeneralEngine::NoteAll() {
  if (recording_) journal_.push_back(UndoAll{Snapshot()});
}

void GeneralEngine::Note(VertexId v) {
  if (!recording_) return;
  const Vertex& vertex = graph_.vertex(v);
  journal_.push_back(UndoVertex{v, vertex.up, vertex.properties});
}

void GeneralEngine::Commit() {
  recording_ = false;
  journal_.clear();
}

void GeneralEngine::Rollback() {
  recording_ = false;
  std::vector<Undo> journal = std::move(journal_);
  journal_.clear();
  for (auto undo = journal.rbegin(); undo != journal.rend(); ++undo) {
    std::visit([this](auto& change) { TakeBack(change); }, *undo);
  }
}

void GeneralEngine::TakeBack(UndoJob& undo) {
  SetHolding(undo.job, std::move(undo.before));
}

void GeneralEngine::TakeBack(UndoOrder& undo) {
  state_.SetWeight(undo.edge, undo.weight);
}

void GeneralEngine::TakeBack(UndoVertex& undo) {
  graph_.SetUp(undo.vertex, undo.up);
  if (undo.properties != graph_.vertex(undo.vertex).properties) NodesChanged();
  graph_.SetProperties(undo.vertex, std::move(undo.properties));
  state_.Touch(undo.vertex);
  CountNodes();
}

void GeneralEngine::TakeBack(UndoWorkload& undo) {
  packing_.SetWorkload(std::move(undo.before));
  WorkloadChanged();
}

void GeneralEngine::TakeBack(UndoAll& undo) {
  graph_ = std::move(undo.before->graph_);
  state_.Take(std::move(undo.before->state_));
  jobs_ = std::move(undo.before->jobs_);
  policy_ = undo.before->policy_;
  GraphChanged();
}

uint64_t GeneralEngine::Fingerprint() const {
  Fnv hash;
  hash.Add(state_.Fingerprint());
  for (const auto& [job, holding] : jobs_) {
    hash.Add(job);
    for (const int64_t time : {holding.at_s, holding.duration_s}) {
      hash.Add(static_cast<uint64_t>(time));
    }
    hash.Add(static_cast<uint64_t>(holding.reserved));
    for (const HeldVertex& held : holding.vertices) {
      hash.Add(held.vertex);
      hash.Add(static_cast<uint64_t>(held.amount));
      hash.Add(static_cast<uint64_t>(held.exclusive));
    }
  }
  return hash.value();
}

uint64_t GeneralEngine::StateFingerprint() const {
  Fnv hash;
  hash.Add(Fingerprint());
  hash.Add(state_.OrderFingerprint());
  for (const Vertex& vertex : graph_.vertices()) {
    hash.Add(static_cast<uint64_t>(vertex.up) * 2 + static_cast<uint64_t>(vertex.gone));
    for (const auto& [key, value] : vertex.properties) {
      hash.Add(key);
      hash.Add(value);
    }
  }
  for (const VertexId node : graph_.OfType(graph_.types().Find("node"))) {
    for (const Taint& taint : graph_.TaintsOf(node)) {
      hash.Add(taint.key);
      hash.Add(taint.value);
      hash.Add(taint.effect);
    }
  }
  for (const WorkloadShape& shape : packing_.workload()) {
    for (const auto& [resource, amount] : shape.amounts) {
      hash.Add(resource);
      hash.Add(static_cast<uint64_t>(amount));
    }
    hash.Add(shape.constraint.ToString());
    hash.Add(shape.count);
  }
  return hash.value();
}

}  // namespace fluxqueue::graph
