#include "services/graph/domain/pool_state.h"

#include <algorithm>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/base/status_macros.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/windows.h"

namespace fluxqueue::graph_service {
namespace {

template <typename Message>
absl::StatusOr<Message> Decode(const std::string& bytes, std::string_view what) {
  Message message;
  if (message.ParseFromString(bytes)) return message;
  return MakeStatus(absl::StatusCode::kDataLoss, "the matcher's row of {} does not decode", what);
}

absl::StatusOr<graph::Placement> PlacementOf(const std::string& bytes, const std::string& job_id) {
  ASSIGN_OR_RETURN(const auto placement,
                   Decode<events::v1::Placement>(bytes, "what job " + job_id + " has"));
  return matcher_core::FromProto(placement);
}

absl::Status AddNodes(const std::vector<matcher_core::NodeRow>& rows,
                      const matcher::v1::PoolState& pool,
                      PoolState* state) {
  for (const matcher_core::NodeRow& row : rows) {
    if (!row.present) continue;
    ASSIGN_OR_RETURN(const auto node, Decode<events::v1::Node>(row.node, "node " + row.name));
    state->nodes.push_back(matcher_core::ToNodeSpec(node, row.ordinal, pool.host_ports()));
  }
  std::sort(state->nodes.begin(), state->nodes.end(), [](const auto& a, const auto& b) {
    return a.ordinal < b.ordinal;
  });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PoolState> StateOf(const matcher_core::Rows& rows, Millis now) {
  ASSIGN_OR_RETURN(const auto pool,
                   Decode<matcher::v1::PoolState>(rows.pool.value_or(""), "the pool"));
  PoolState state;
  if (pool.beginning_ms() != 0) state.now_s = (now.count() - pool.beginning_ms()) / 1000;
  state.policy = pool.config().policy();
  state.levels.assign(pool.config().levels().begin(), pool.config().levels().end());
  RETURN_IF_ERROR(AddNodes(rows.nodes, pool, &state));
  for (const matcher_core::AllocationRow& row : rows.allocations) {
    if (row.released) continue;
    ASSIGN_OR_RETURN(graph::Placement placement, PlacementOf(row.placement, row.key.job_id));
    state.held.emplace_back(row.key, std::move(placement));
  }
  for (const matcher_core::ReservationRow& row : rows.reservations) {
    ASSIGN_OR_RETURN(graph::Placement placement, PlacementOf(row.placement, row.key.job_id));
    state.reserved.emplace_back(row.key, std::move(placement));
  }
  state.closures = matcher_core::Closures(pool, {}, state.now_s);
  return state;
}

absl::StatusOr<std::vector<std::string>> LevelsOf(const std::string& pool_row) {
  ASSIGN_OR_RETURN(const auto pool, Decode<matcher::v1::PoolState>(pool_row, "the pool"));
  const auto& levels = pool.config().levels();
  return std::vector<std::string>(levels.begin(), levels.end());
}

absl::StatusOr<Jobs> JobsOf(const std::vector<matcher_core::AllocationRow>& rows) {
  Jobs jobs;
  for (const matcher_core::AllocationRow& row : rows) {
    if (row.released) continue;
    ASSIGN_OR_RETURN(graph::Placement placement, PlacementOf(row.placement, row.key.job_id));
    jobs[row.key.job_id].push_back(std::move(placement));
  }
  return jobs;
}

}  // namespace fluxqueue::graph_service
