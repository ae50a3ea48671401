// The matcher's core to rows, and back.
#include <algorithm>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/graph/fnv.h"
#include "libs/matcher_core/answer_size.h"
#include "libs/matcher_core/batch.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/pool_config.h"
#include "libs/matcher_core/reservations.h"

namespace fluxqueue::matcher_core {
namespace {

template <typename... Args>
absl::Status DataLoss(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(absl::StatusCode::kDataLoss, format, std::forward<Args>(args)...);
}

}  // namespace

Changes MatcherCore::TakeChanges() const {
  Changes changes;
  if (batch_ == nullptr) return changes;
  batch_->allocations.Describe(&changes);
  for (const auto& [name, before, now] : nodes_.Changes()) {
    if (now == nullptr) {
      changes.nodes_dropped.push_back(name);
    } else {
      changes.nodes.push_back({name, now->uid, now->ordinal, now->bytes, now->present});
    }
  }
  for (const auto& [key, before, now] : specs_.Changes()) {
    if (now == nullptr) {
      changes.specs_dropped.push_back(key);
    } else {
      changes.specs.push_back({key.first, key.second, now->revision, now->slots, now->text});
    }
  }
  for (const auto& [key, before, now] : promises_.Changes()) {
    if (now == nullptr) {
      changes.reservations_dropped.push_back(key);
    } else {
      changes.reservations.push_back({key, ToProto(*now).SerializeAsString()});
    }
  }
  for (const auto& [id, answer] : batch_->answers) {
    changes.answers.push_back({id, answer});
    changes.answers_dropped_through = id > kAnswersKept ? id - kAnswersKept : 0;
  }
  std::string state = state_.SerializeAsString();
  if (state != batch_->state_before.SerializeAsString()) changes.pool = std::move(state);
  if (forecast_.changed()) changes.forecast = forecast_.Row(state_.config());
  return changes;
}

absl::Status MatcherCore::Restore(const Rows& rows) {
  batch_.reset();
  specs_.Clear();
  ruled_.Clear();
  nodes_.Clear();
  promises_.Clear();
  RETURN_IF_ERROR(RestorePool(rows));
  RETURN_IF_ERROR(RestoreNodes(rows));
  RETURN_IF_ERROR(RestoreAllocations(rows));
  RETURN_IF_ERROR(RestorePromises(rows));
  for (const SpecRow& row : rows.specs) {
    Spec spec = MakeSpec(row.revision, row.slots, row.jobspec);
    Expect(spec, 1);
    const SpecKey key(row.job_id, row.part);
    if (HasRules(spec)) ruled_.Restore({spec.jobspec->pods.space, key}, true);
    specs_.Restore(key, std::move(spec));
  }
  return absl::OkStatus();
}

absl::Status MatcherCore::RestorePromises(const Rows& rows) {
  for (const ReservationRow& row : rows.reservations) {
    events::v1::Placement placement;
    if (!placement.ParseFromString(row.placement)) {
      return DataLoss("pool {}: the reservation of job {} does not decode", pool_, row.key.job_id);
    }
    promises_.Restore(row.key, FromProto(placement));
  }
  return absl::OkStatus();
}

absl::Status MatcherCore::RestorePool(const Rows& rows) {
  state_.Clear();
  last_answer_.clear();
  plan_.clear();
  if (rows.pool && !state_.ParseFromString(*rows.pool)) {
    return DataLoss("pool {}: the row does not decode", pool_);
  }
  ASSIGN_OR_RETURN(engine_, make_engine_(KindOf(state_.config())));
  const absl::Status policy = Configure(state_.config(), engine_.get());
  if (!policy.ok()) return DataLoss("pool {}: {}", pool_, Message(policy));
  const auto& levels = state_.config().levels();
  const absl::Status set = engine_->SetLevels({levels.begin(), levels.end()});
  if (!set.ok()) return DataLoss("pool {}: {}", pool_, Message(set));
  const absl::Status forecast = forecast_.Restore(state_.config(), rows.forecast, engine_.get());
  if (!forecast.ok()) return DataLoss("pool {}: {}", pool_, Message(forecast));
  return RestoreAnswer(rows);
}

absl::Status MatcherCore::RestoreAnswer(const Rows& rows) {
  if (state_.last_cycle_id() == 0) return absl::OkStatus();
  const auto answer =
      std::find_if(rows.answers.begin(), rows.answers.end(), [this](const AnswerRow& row) {
        return row.cycle_id == state_.last_cycle_id();
      });
  events::v1::CycleAnswered last;
  if (answer == rows.answers.end() || !last.ParseFromString(answer->answer)) {
    return DataLoss("pool {}: the answer to cycle {} is missing or does not decode",
                    pool_,
                    state_.last_cycle_id());
  }
  // An older version may have kept one that it could not send.
  last_answer_ = Fit(&last) ? last.SerializeAsString() : answer->answer;
  plan_ = PlanOf(last);
  return absl::OkStatus();
}

absl::Status MatcherCore::RestoreNodes(const Rows& rows) {
  // In the order in which the engine can append them.
  std::vector<const NodeRow*> by_ordinal;
  for (const NodeRow& row : rows.nodes) by_ordinal.push_back(&row);
  std::sort(by_ordinal.begin(), by_ordinal.end(), [](const NodeRow* a, const NodeRow* b) {
    return a->ordinal < b->ordinal;
  });
  for (const NodeRow* each : by_ordinal) {
    const NodeRow& row = *each;
    events::v1::Node node;
    if (!node.ParseFromString(row.node)) {
      return DataLoss("pool {}: the row of node {} does not decode", pool_, row.name);
    }
    if (row.ordinal >= state_.next_ordinal()) {
      return DataLoss("pool {}: node {} has the ordinal {}, and the next one to be given is {}",
                      pool_,
                      row.name,
                      row.ordinal,
                      state_.next_ordinal());
    }
    if (row.present) {
      const absl::Status added =
          engine_->AddNode(ToNodeSpec(node, row.ordinal, state_.host_ports()));
      if (!added.ok()) return DataLoss("pool {}: {}", pool_, Message(added));
    }
    nodes_.Restore(row.name,
                   {row.uid, row.ordinal, row.node, node.resource_version(), row.present});
  }
  return absl::OkStatus();
}

absl::Status MatcherCore::RestoreAllocations(const Rows& rows) {
  for (const AllocationRow& row : rows.allocations) {
    if (row.released) continue;
    events::v1::Placement placement;
    if (!placement.ParseFromString(row.placement) ||
        PlacementHash(placement) != row.placement_hash) {
      return DataLoss(
          "pool {}: the placement of job {} attempt {} part {} does not decode or is "
          "not what its hash says",
          pool_,
          row.key.job_id,
          row.key.attempt,
          row.key.part);
    }
    const absl::Status restored = engine_->Restore(row.key, FromProto(placement));
    if (!restored.ok()) return DataLoss("pool {}: {}", pool_, Message(restored));
  }
  return absl::OkStatus();
}

uint64_t MatcherCore::Fingerprint() const {
  graph::Fnv hash;
  hash.Add(engine_->Fingerprint());
  hash.Add(state_.SerializeAsString());
  hash.Add(forecast_.Row(state_.config()));
  hash.Add(last_answer_);
  for (const auto& [key, spec] : specs_.map()) {
    hash.Add(key.first);
    hash.Add(key.second);
    hash.Add(spec.revision);
    hash.Add(spec.slots);
    hash.Add(spec.text);
  }
  for (const auto& [key, placement] : promises_.map()) {
    hash.Add(key.job_id);
    hash.Add(key.attempt);
    hash.Add(key.part);
    hash.Add(ToProto(placement).SerializeAsString());
  }
  for (const auto& [name, node] : nodes_.map()) {
    hash.Add(name);
    hash.Add(node.uid);
    hash.Add(node.ordinal);
    hash.Add(node.bytes);
    hash.Add(uint64_t{node.present});
  }
  return hash.value();
}

}  // namespace fluxqueue::matcher_core
