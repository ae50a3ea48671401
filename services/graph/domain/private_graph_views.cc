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
  if (holding != nullptr) {
    const auto written = messages_.WriteAllocation(*holding, wanted, event.mutable_allocation());
    FitEvent(written, &event);
  }
  return event;
}

bool PrivateGraph::Watch(const std::shared_ptr<AllocationWatch>& watch) {
  std::erase_if(watchers_, [](const Watcher& other) { return other.watch->ended(); });
  auto watcher = std::find_if(watchers_.begin(), watchers_.end(), [&](const Watcher& other) {
    return other.watch == watch;
  });
  if (watcher == watchers_.end()) watcher = watchers_.insert(watcher, Watcher{.watch = watch});
  const Wanted wanted = {watch->request().format(), watch->request().nodes()};
  const auto& jobs = session_->jobs();
  for (auto job = jobs.upper_bound(watcher->told); job != jobs.end(); ++job) {
    watcher->told = job->first;
    if (job->second.mode == reapi::JobMode::kCanceled) continue;
    Event event = EventOf(Event::KIND_HELD, job->first, engine().Find(job->first), wanted);
    if (!watch->PushHeld(std::move(event))) return true;
  }
  watcher->synced = true;
  Event synced;
  synced.set_kind(Event::KIND_SYNCED);
  static_cast<void>(watch->PushHeld(std::move(synced)));
  return false;
}

void PrivateGraph::EndWatches(const absl::Status& why) {
  for (const Watcher& watcher : watchers_) watcher.watch->End(why);
  watchers_.clear();
}

void PrivateGraph::Tell(Event::Kind kind, JobNumber job, const Holding* holding) {
  std::erase_if(watchers_, [](const Watcher& watcher) { return watcher.watch->ended(); });
  for (const Watcher& watcher : watchers_) {
    // Of other jobs the list will tell what has become of them.
    if (!watcher.synced && job > watcher.told) continue;
    const v1::WatchAllocationsRequest& request = watcher.watch->request();
    watcher.watch->Push(EventOf(kind, job, holding, {request.format(), request.nodes()}));
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
