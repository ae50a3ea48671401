// Looking at a private graph as a whole: sums, watches, groups.
#include <algorithm>
#include <map>
#include <utility>

#include "libs/base/status_macros.h"
#include "services/graph/domain/private_graph.h"

namespace fluxqueue::graph_service {
namespace {

using graph::Holding;
using graph::JobNumber;
using Event = v1::WatchAllocationsResponse;

}  // namespace

void PrivateGraph::Summarise(v1::GetGraphResponse* response) const {
  messages_.Summarise(HeldByType(), response);
}

std::map<graph::TypeId, int64_t> PrivateGraph::HeldByType() const {
  std::map<graph::TypeId, int64_t> sums;
  for (const auto& [job, info] : session_->jobs()) {
    const Holding* holding = engine().Find(job);
    if (holding == nullptr || info.mode != reapi::JobMode::kAllocated) continue;
    for (const graph::HeldVertex& held : holding->vertices) {
      if (held.exclusive) sums[engine().graph().vertex(held.vertex).type] += held.amount;
    }
  }
  return sums;
}

Event PrivateGraph::EventOf(Event::Kind kind,
                            JobNumber job,
                            const Holding* holding,
                            const Wanted& wanted) const {
  Event event;
  event.set_kind(kind);
  event.set_job(static_cast<int64_t>(job));
  if (holding != nullptr) messages_.WriteAllocation(*holding, wanted, event.mutable_allocation());
  return event;
}

void PrivateGraph::Watch(std::shared_ptr<AllocationWatch> watch) {
  const Wanted wanted = {watch->request().format(), watch->request().nodes()};
  for (const auto& [job, info] : session_->jobs()) {
    if (info.mode == reapi::JobMode::kCanceled) continue;
    watch->PushHeld(EventOf(Event::KIND_HELD, job, engine().Find(job), wanted));
  }
  Event synced;
  synced.set_kind(Event::KIND_SYNCED);
  watch->PushHeld(std::move(synced));
  std::erase_if(watches_, [](const auto& other) { return other->ended(); });
  watches_.push_back(std::move(watch));
}

void PrivateGraph::EndWatches(const absl::Status& why) {
  for (const auto& watch : watches_) watch->End(why);
  watches_.clear();
}

void PrivateGraph::Tell(Event::Kind kind, JobNumber job, const Holding* holding) {
  if (watches_.empty()) return;
  std::erase_if(watches_, [](const auto& watch) { return watch->ended(); });
  for (const auto& watch : watches_) {
    watch->Push(EventOf(kind, job, holding, {watch->request().format(), watch->request().nodes()}));
  }
}

std::optional<PrivateGraph::Group> PrivateGraph::GroupBehind(JobNumber job) const {
  const auto& jobs = session_->jobs();
  for (auto next = jobs.upper_bound(job); next != jobs.end(); ++next) {
    const Holding* holding = engine().Find(next->first);
    if (holding != nullptr) return Group{next->first, messages_.NodesIn(*holding)};
  }
  return std::nullopt;
}

absl::StatusOr<PrivateGraph::Group> PrivateGraph::GroupOf(JobNumber job) const {
  const Holding* holding = engine().Find(job);
  if (holding == nullptr) {
    return MakeStatus(absl::StatusCode::kNotFound, "job {} holds nothing", job);
  }
  return Group{job, messages_.NodesIn(*holding)};
}

}  // namespace fluxqueue::graph_service
