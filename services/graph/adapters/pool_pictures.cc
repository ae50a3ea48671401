#include "services/graph/adapters/pool_pictures.h"

#include <optional>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph_service {
namespace {

postgres::Options OptionsOf(const std::string& dsn) {
  return {.dsn = dsn, .application = "graph", .schema = "matcher"};
}

absl::Status NoPool(const std::string& pool) {
  return MakeStatus(absl::StatusCode::kNotFound,
                    "there is no pool {}; a node or a FluxQueue makes one (label or field "
                    "fluxqueue.io/pool)",
                    pool);
}

PoolPictures::Version VersionIn(const matcher_rows::PoolHead& head) {
  return {head.epoch, head.commits};
}

absl::StatusOr<PoolPictures::View> Paint(const PoolState& state) {
  ASSIGN_OR_RETURN(PoolPictures::View view, PoolView::Make(state));
  return view;
}

}  // namespace

PoolPictures::PoolPictures(const std::string& dsn, size_t connections, const Clock& clock)
    : connections_(OptionsOf(dsn), connections), clock_(clock) {}

absl::Status PoolPictures::InSnapshot(const std::string& pool, const Read& read) {
  return connections_.Transact([&](pqxx::transaction_base& tx) -> absl::Status {
    tx.exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    std::optional<matcher_rows::PoolHead> head = matcher_rows::LoadHead(tx, pool);
    if (!head.has_value()) return NoPool(pool);
    return read(tx, *std::move(head));
  });
}

std::shared_ptr<PoolPictures::Pool> PoolPictures::Known(const std::string& pool) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Pool>& known = pools_[pool];
  if (known == nullptr) known = std::make_shared<Pool>();
  return known;
}

absl::StatusOr<PoolPictures::View> PoolPictures::Look(const std::string& pool, TimePoint asked) {
  // Only pools that there are become known.
  RETURN_IF_ERROR(VersionOf(pool).status());
  const std::shared_ptr<Pool> known = Known(pool);
  const std::lock_guard lock(known->loading);
  Whole& whole = known->whole;
  if (whole.view != nullptr && whole.begun >= asked) return whole.view;
  const Millis now = std::chrono::duration_cast<Millis>(clock_.Now().time_since_epoch());
  Whole next{.begun = std::chrono::steady_clock::now(),
             .version = {},
             .second = now.count() / 1000,
             .view = nullptr};
  matcher_core::Rows rows;
  RETURN_IF_ERROR(InSnapshot(pool, [&](auto& tx, matcher_rows::PoolHead head) -> absl::Status {
    next.version = VersionIn(head);
    if (next.version == whole.version && next.second == whole.second) {
      next.view = whole.view;
      return absl::OkStatus();
    }
    rows.pool = std::move(head.row);
    rows.nodes = matcher_rows::LoadNodes(tx, pool);
    rows.allocations = matcher_rows::LoadAllocations(tx, pool);
    rows.reservations = matcher_rows::LoadReservations(tx, pool);
    return absl::OkStatus();
  }));
  if (next.view == nullptr) {
    ASSIGN_OR_RETURN(const PoolState state, StateOf(rows, now));
    ASSIGN_OR_RETURN(next.view, Paint(state));
  }
  whole = std::move(next);
  return whole.view;
}

absl::StatusOr<PoolPictures::Held> PoolPictures::Find(const std::string& pool, const Pick& pick) {
  Nodes nodes;
  std::vector<std::string> picked;
  matcher_core::Rows rows;
  std::vector<matcher_core::AllocationRow> held_rows;
  RETURN_IF_ERROR(InSnapshot(pool, [&](auto& tx, matcher_rows::PoolHead head) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<std::string> levels, LevelsOf(head.row));
    nodes = Known(pool)->NodesNow();
    if (nodes.version != head.nodes_version || nodes.levels != levels) nodes.view = nullptr;
    if (nodes.view == nullptr) {
      nodes = {.version = head.nodes_version, .levels = levels, .view = nullptr};
      rows.pool = std::move(head.row);
      rows.nodes = matcher_rows::LoadNodes(tx, pool);
    }
    picked = pick(tx);
    if (!picked.empty()) held_rows = matcher_rows::LoadAllocationsOf(tx, pool, picked);
    return absl::OkStatus();
  }));
  if (nodes.view == nullptr) {
    ASSIGN_OR_RETURN(const PoolState state, StateOf(rows, Millis(0)));
    ASSIGN_OR_RETURN(nodes.view, Paint(state));
    Known(pool)->Keep(nodes);
  }
  Held held{.nodes = nodes.view, .jobs = {}};
  ASSIGN_OR_RETURN(held.jobs, JobsOf(held_rows));
  for (std::string& job_id : picked) held.jobs.try_emplace(std::move(job_id));
  return held;
}

PoolPictures::Nodes PoolPictures::Pool::NodesNow() {
  const std::lock_guard lock(mutex);
  return nodes;
}

void PoolPictures::Pool::Keep(Nodes made) {
  const std::lock_guard lock(mutex);
  nodes = std::move(made);
}

absl::StatusOr<PoolPictures::Version> PoolPictures::VersionOf(const std::string& pool) {
  Version version;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    const auto head = matcher_rows::LoadHead(tx, pool);
    if (!head.has_value()) return NoPool(pool);
    version = VersionIn(*head);
    return absl::OkStatus();
  }));
  return version;
}

}  // namespace fluxqueue::graph_service
