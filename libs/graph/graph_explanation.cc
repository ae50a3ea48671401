#include "libs/graph/graph_explanation.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "libs/graph/pruner.h"

namespace fluxqueue::graph {
namespace {

// Amounts now, and were everything up and free.
struct Found {
  int64_t now = 0;
  int64_t ever = 0;
};

class GraphExplainer {
 public:
  GraphExplainer(const ResourceGraph& graph,
                 const GraphState& state,
                 const std::map<JobNumber, Holding>& jobs,
                 const ResolvedRequest& request)
      : graph_(graph), state_(state), jobs_(jobs), job_(request.job), levels_(request.levels) {
    node_type_ = graph.types().Find("node");
  }

  GraphExplanation Explain() {
    Enumerate(levels_);
    const Found found = Find(graph_.root(), levels_.front(), true, true);
    if (!Suffices(levels_.front(), found.ever)) {
      Say(/*now=*/false);
    } else if (!Suffices(levels_.front(), found.now)) {
      Say(/*now=*/true);
    } else {
      result_.sentence = "fits now";
    }
    for (Tally& tally : tallies_) {
      if (tally.level->is_slot()) tally.counts.type = HostName(tally);
      result_.levels.push_back(std::move(tally.counts));
    }
    return std::move(result_);
  }

 private:
  // A place where a slot's part, or a level's vertices, come nearest to what is wanted.
  struct Nearest {
    Found best;
    VertexId at = 0;  // the most now; where there is none now, the most ever
    int64_t wanted = 0;
  };
  struct Tally {
    const RequestLevel* level = nullptr;
    GraphExplanation::Level counts;
    TypeId host = NameTable::kUnknown;
    std::vector<Nearest> parts;  // of what stands in the level
  };

  static bool Suffices(const RequestLevel& level, int64_t found) {
    return found >= static_cast<int64_t>(level.request->count.min);
  }

  // One chain of levels, the first of each list: what stands beside it never matches.
  void Enumerate(const std::vector<RequestLevel>& levels) {
    const RequestLevel& level = levels.front();
    Tally tally;
    tally.level = &level;
    tally.counts.type = level.request->type;
    tally.counts.wanted = level.request->count.min;
    tally.parts.resize(level.with.size());
    for (size_t i = 0; i < level.with.size(); ++i) {
      tally.parts[i].wanted = static_cast<int64_t>(level.with[i].request->count.min);
    }
    tallies_.push_back(std::move(tally));
    if (!level.is_slot() && !level.with.empty()) Enumerate(level.with);
  }

  Tally& TallyOf(const RequestLevel& level) {
    return *std::find_if(tallies_.begin(), tallies_.end(), [&level](const Tally& tally) {
      return tally.level == &level;
    });
  }

  bool IsAllowed(VertexId v, bool lasting) const {
    return graph_.vertex(v).type != node_type_ || MeetsConstraint(graph_, v, job_, lasting);
  }

  // How many of the level there are at the vertex and below it.
  Found Find(VertexId v, const RequestLevel& level, bool allowed_above, bool up_above) {
    const bool allowed = allowed_above && IsAllowed(v, /*lasting=*/true);
    const bool up = up_above && IsUsable(v);
    if (level.is_slot() && HasParts(v, level)) return Count(v, level, allowed, up);
    if (level.type == graph_.vertex(v).type) return Count(v, level, allowed, up);
    return FindInChildren(v, level, allowed, up);
  }

  Found FindInChildren(VertexId v, const RequestLevel& level, bool allowed, bool up) {
    Found sum;
    ForEachChild(v, [&](VertexId child) {
      const Found found = Find(child, level, allowed, up);
      sum.now += found.now;
      sum.ever += found.ever;
    });
    return sum;
  }

  bool IsUsable(VertexId v) const {
    return graph_.vertex(v).up && state_.FreeDuring(v, 0, 1) > 0 && IsAllowed(v, /*lasting=*/false);
  }

  bool HasParts(VertexId v, const RequestLevel& slot) const {
    return !slot.with.empty() &&
           std::all_of(slot.with.begin(), slot.with.end(), [&](const RequestLevel& part) {
             bool has = false;
             ForEachChild(
                 v, [&](VertexId child) { has = has || graph_.vertex(child).type == part.type; });
             return has;
           });
  }

  // A vertex of the level, or one that slots can be made of.
  Found Count(VertexId v, const RequestLevel& level, bool allowed, bool up) {
    Tally& tally = TallyOf(level);
    ++tally.counts.there;
    tally.host = graph_.vertex(v).type;
    if (!allowed) return {};
    ++tally.counts.allowed;
    tally.counts.up += up ? 1 : 0;
    Found fits{INT64_MAX, INT64_MAX};
    for (size_t i = 0; i < level.with.size(); ++i) {
      const RequestLevel& part = level.with[i];
      Found found = level.is_slot() ? SumOf(v, part) : FindBelow(v, part, up);
      if (!up) found.now = 0;
      Nearest& nearest = tally.parts[i];
      const bool more_now = found.now > nearest.best.now;
      const bool more_ever = nearest.best.now == 0 && found.ever >= nearest.best.ever;
      if (more_now || more_ever) nearest.at = v;
      nearest.best.now = std::max(nearest.best.now, found.now);
      nearest.best.ever = std::max(nearest.best.ever, found.ever);
      fits.now = std::min(fits.now, found.now / nearest.wanted);
      fits.ever = std::min(fits.ever, found.ever / nearest.wanted);
    }
    if (level.with.empty()) fits = {1, 1};
    if (!level.is_slot()) fits = {std::min<int64_t>(fits.now, 1), std::min<int64_t>(fits.ever, 1)};
    if (!up) fits.now = 0;
    if (IsHeldFor(v, level)) fits.now = 0;
    tally.counts.large_enough += fits.ever > 0 ? 1 : 0;
    tally.counts.free_enough += fits.now > 0 ? 1 : 0;
    tally.counts.ever += static_cast<uint64_t>(fits.ever);
    tally.counts.now += static_cast<uint64_t>(fits.now);
    return fits;
  }

  // Wanted alone, and somebody is there.
  bool IsHeldFor(VertexId v, const RequestLevel& level) const {
    return level.request->exclusivity == Exclusivity::kExclusive && !state_.IsUnusedDuring(v, 0, 1);
  }

  Found FindBelow(VertexId v, const RequestLevel& level, bool up) {
    // A slot is made of what the vertex itself contains, when that has all of its parts.
    if (level.is_slot() && HasParts(v, level)) return Count(v, level, true, up);
    return FindInChildren(v, level, true, up);
  }

  // An amount is taken from one of several that can be divided, or several whole ones are.
  Found SumOf(VertexId v, const RequestLevel& part) const {
    Found sum;
    Found most;
    int64_t largest = 0;
    ForEachChild(v, [&](VertexId child) {
      const Vertex& vertex = graph_.vertex(child);
      if (vertex.type == part.type) largest = std::max(largest, vertex.size);
    });
    const auto wanted = static_cast<int64_t>(part.request->count.min);
    ForEachChild(v, [&](VertexId child) {
      const Vertex& vertex = graph_.vertex(child);
      if (vertex.type != part.type) return;
      const int64_t free = vertex.up ? std::max<int64_t>(0, state_.FreeDuring(child, 0, 1)) : 0;
      most = {std::max(most.now, free), std::max(most.ever, vertex.size)};
      const bool shared = vertex.divisible && wanted <= largest;
      const bool whole = vertex.divisible && wanted > largest;
      sum.ever += shared ? vertex.size / wanted * wanted : vertex.size;
      sum.now += shared ? free / wanted * wanted : whole && free < vertex.size ? 0 : free;
    });
    return {std::max(sum.now, most.now), std::max(sum.ever, most.ever)};
  }

  void ForEachChild(VertexId v, const std::function<void(VertexId)>& visit) const {
    for (const EdgeId e : graph_.vertex(v).out) {
      if (graph_.edge(e).subsystem == ResourceGraph::kContainment) visit(graph_.edge(e).target);
    }
  }

  // The lowest level that cannot be had says the most.
  void Say(bool now) {
    if (SayNone()) return;
    for (auto tally = tallies_.rbegin(); tally != tallies_.rend(); ++tally) {
      if (SayOf(*tally, now)) return;
    }
  }

  // Some level is not in the graph at all.
  bool SayNone() {
    for (const Tally& tally : tallies_) {
      if (tally.counts.there > 0) continue;
      result_.missing = tally.level->request->type;
      result_.sentence = tally.level->is_slot()
                             ? fmt::format("nothing in the graph contains {}", PartsOf(tally))
                             : fmt::format("{}: the graph has none", result_.missing);
      return true;
    }
    return false;
  }

  std::string HostName(const Tally& tally) const {
    return tally.host == NameTable::kUnknown ? "vertex" : graph_.types()[tally.host];
  }

  bool SayOf(const Tally& tally, bool now) {
    const GraphExplanation::Level& counts = tally.counts;
    const uint64_t fitting = now ? counts.free_enough : counts.large_enough;
    const std::string name = tally.level->is_slot() ? HostName(tally) : counts.type;
    if (counts.allowed == 0) {
      result_.missing = name;
      result_.sentence = fmt::format("constraints: none of {} {}s meets them", counts.there, name);
      return true;
    }
    if (fitting == 0) {
      if (now && counts.up == 0) {
        result_.missing = name;
        result_.sentence =
            fmt::format("{}: 0 of {} that may be used are up and not held", name, counts.allowed);
        return true;
      }
      SayPart(tally, name, now);
      return true;
    }
    const uint64_t found = now ? counts.now : counts.ever;
    if (found >= counts.wanted) return false;
    result_.missing = name;
    result_.sentence = fmt::format("{}: needs {}{}, {} {}",
                                   name,
                                   counts.wanted,
                                   tally.level->is_slot() ? " slots" : "",
                                   found,
                                   now ? "fit now" : "would fit if all were up and free");
    return true;
  }

  std::string PartsOf(const Tally& tally) const {
    std::string parts;
    for (const RequestLevel& part : tally.level->with) {
      parts += (parts.empty() ? "" : " and ") + part.request->type;
    }
    return parts;
  }

  // Which part of it falls short on every one of them, and by how little.
  void SayPart(const Tally& tally, const std::string& name, bool now) {
    const auto best_of = [now](const Nearest& part) {
      return now ? part.best.now : part.best.ever;
    };
    const auto shortest =
        std::find_if(tally.parts.begin(), tally.parts.end(), [&best_of](const Nearest& part) {
          return best_of(part) < part.wanted;
        });
    if (shortest == tally.parts.end()) {
      result_.missing = name;
      result_.sentence = fmt::format("no {} has everything at once: {}", name, PartsOf(tally));
      return;
    }
    const RequestLevel& part =
        tally.level->with[static_cast<size_t>(shortest - tally.parts.begin())];
    result_.missing = part.request->type;
    result_.sentence = fmt::format("{}: needs {} on one {}; the {} {} has {}{}",
                                   part.request->type,
                                   shortest->wanted,
                                   name,
                                   now ? "best" : "largest",
                                   name,
                                   best_of(*shortest),
                                   now ? " free" : "");
    if (now) FindHolders(shortest->at, part.type);
  }

  void FindHolders(VertexId host, TypeId type) {
    std::set<VertexId> children;
    ForEachChild(host, [&](VertexId child) {
      if (graph_.vertex(child).type == type) children.insert(child);
    });
    for (const auto& [job, holding] : jobs_) {
      if (holding.at_s > 0) continue;
      int64_t amount = 0;
      for (const HeldVertex& held : holding.vertices) {
        if (children.contains(held.vertex)) amount += held.amount;
      }
      if (amount == 0) continue;
      result_.holders.push_back({job, amount, holding.at_s + holding.duration_s});
    }
    std::stable_sort(result_.holders.begin(),
                     result_.holders.end(),
                     [](const auto& a, const auto& b) { return a.amount > b.amount; });
  }

  const ResourceGraph& graph_;
  const GraphState& state_;
  const std::map<JobNumber, Holding>& jobs_;
  const JobRequest& job_;
  const std::vector<RequestLevel>& levels_;
  TypeId node_type_ = NameTable::kUnknown;
  std::vector<Tally> tallies_;
  GraphExplanation result_;
};

}  // namespace

GraphExplanation ExplainOnGraph(const ResourceGraph& graph,
                                const GraphState& state,
                                const std::map<JobNumber, Holding>& jobs,
                                const ResolvedRequest& request) {
  return GraphExplainer(graph, state, jobs, request).Explain();
}

}  // namespace fluxqueue::graph
