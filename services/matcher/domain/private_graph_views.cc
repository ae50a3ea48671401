// Looking at a private graph as a whole: sums, watches, groups.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "libs/base/status_macros.h"
#include "services/matcher/domain/private_graph.h"

namespace fluxqueue::matcher {
namespace {

using graph::Holding;
using graph::JobNumber;
using graph::ResourceGraph;
using graph::VertexId;
using Event = v1::WatchAllocationsResponse;

}  // namespace

void PrivateGraph::Summarise(v1::GetGraphResponse* response) const {
  const ResourceGraph& resources = engine().graph();
  std::map<graph::TypeId, v1::GetGraphResponse::Level*> levels;
  std::vector<std::pair<VertexId, bool>> way = {{resources.root(), true}};
  std::vector<bool> seen(resources.vertices().size(), false);
  // From the top, level by level.
  for (size_t next = 0; next < way.size(); ++next) {
    const auto [v, above_up] = way[next];
    if (seen[v]) continue;
    seen[v] = true;
    const graph::Vertex& vertex = resources.vertex(v);
    v1::GetGraphResponse::Level*& level = levels[vertex.type];
    if (level == nullptr) {
      level = response->add_levels();
      level->set_type(resources.TypeName(v));
    }
    const bool up = above_up && vertex.up;
    level->set_vertices(level->vertices() + 1);
    level->set_up(level->up() + (up ? 1 : 0));
    level->set_size(level->size() + vertex.size);
    for (const graph::EdgeId e : vertex.out) {
      const graph::Edge& edge = resources.edge(e);
      if (edge.subsystem == ResourceGraph::kContainment) way.emplace_back(edge.target, up);
    }
  }
  for (const auto& [job, info] : session_->jobs()) {
    const Holding* holding = engine().Find(job);
    if (holding == nullptr || info.mode != reapi::JobMode::kAllocated) continue;
    for (const graph::HeldVertex& held : holding->vertices) {
      if (!held.exclusive) continue;
      v1::GetGraphResponse::Level* level = levels.at(resources.vertex(held.vertex).type);
      level->set_held(level->held() + held.amount);
    }
  }
}

Event PrivateGraph::EventOf(Event::Kind kind,
                            JobNumber job,
                            const Holding* holding,
                            const Wanted& wanted) const {
  Event event;
  event.set_kind(kind);
  event.set_job(static_cast<int64_t>(job));
  if (holding != nullptr) WriteAllocation(*holding, wanted, event.mutable_allocation());
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

int64_t PrivateGraph::NodesIn(const Holding& holding) const {
  std::set<VertexId> nodes;
  for (const graph::HeldVertex& held : holding.vertices) {
    if (held.exclusive && node_of_[held.vertex] != kNoNode) nodes.insert(node_of_[held.vertex]);
  }
  return static_cast<int64_t>(nodes.size());
}

std::optional<PrivateGraph::Group> PrivateGraph::GroupBehind(JobNumber job) const {
  const auto& jobs = session_->jobs();
  for (auto next = jobs.upper_bound(job); next != jobs.end(); ++next) {
    const Holding* holding = engine().Find(next->first);
    if (holding != nullptr) return Group{next->first, NodesIn(*holding)};
  }
  return std::nullopt;
}

absl::StatusOr<PrivateGraph::Group> PrivateGraph::GroupOf(JobNumber job) const {
  const Holding* holding = engine().Find(job);
  if (holding == nullptr) {
    return MakeStatus(absl::StatusCode::kNotFound, "job {} holds nothing", job);
  }
  return Group{job, NodesIn(*holding)};
}

}  // namespace fluxqueue::matcher
