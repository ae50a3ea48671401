#include "libs/conformance/fluxion_target.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/fluxion/context.h"
#include "libs/graph/idset.h"

namespace fluxqueue::conformance {
namespace {

using fluxion::Context;
using graph::MatchOperation;
using nlohmann::json;

// Path, size and exclusiveness of what a JGF text names, sorted.
json ResourcesOf(const json& jgf) {
  std::vector<json> resources;
  for (const json& node : jgf.at("graph").at("nodes")) {
    const json& vertex = node.at("metadata");
    resources.push_back(json::array({vertex.at("paths").at("containment"),
                                     vertex.value("size", 1),
                                     vertex.value("exclusive", false)}));
  }
  std::sort(resources.begin(), resources.end());
  return resources;
}

// R without the scheduling key, of the cores and gpus that a JGF text names: the interface gives
// back whole ranks.
json RanksOf(const json& jgf) {
  std::map<int64_t, std::map<std::string, std::vector<int64_t>>> ids;
  std::map<int64_t, std::string> names;
  for (const json& node : jgf.at("graph").at("nodes")) {
    const json& vertex = node.at("metadata");
    const std::string type = vertex.at("type");
    const int64_t rank = vertex.value("rank", -1);
    if (type == "node") names[rank] = vertex.at("name");
    if (type == "core" || type == "gpu") ids[rank][type].push_back(vertex.at("id"));
  }
  json lite = json::array();
  json nodes = json::array();
  for (auto& [rank, of_rank] : ids) {
    json children = json::object();
    for (auto& [type, of_type] : of_rank) {
      std::sort(of_type.begin(), of_type.end());
      children[type] = graph::FormatIdset(of_type);
    }
    lite.push_back({{"rank", std::to_string(rank)}, {"children", std::move(children)}});
    nodes.push_back(names[rank]);
  }
  return {{"version", 1},
          {"execution",
           {{"R_lite", std::move(lite)},
            {"nodelist", std::move(nodes)},
            {"starttime", 0},
            {"expiration", 0}}}};
}

std::map<std::string, int64_t> RankByPath(const json& jgf) {
  std::map<std::string, int64_t> ranks;
  for (const json& node : jgf.at("graph").at("nodes")) {
    const json& vertex = node.at("metadata");
    ranks[vertex.at("paths").at("containment")] = vertex.value("rank", -1);
  }
  return ranks;
}

class FluxionTarget final : public ScenarioTarget {
 public:
  FluxionTarget(std::shared_ptr<const fluxion::Library> library,
                json graph,
                Context::Settings settings)
      : library_(std::move(library)), graph_(std::move(graph)), settings_(std::move(settings)) {}

  // A context of the graph as it is now, with all that is held.
  absl::Status Rebuild() {
    context_.reset();
    ASSIGN_OR_RETURN(context_, fluxion::MakeContext(library_, graph_.dump(), settings_));
    for (const auto& [path, up] : up_) RETURN_IF_ERROR(context_->SetUp(path, up));
    for (const auto& [job, resources] : held_) {
      RETURN_IF_ERROR(context_->Restore(job, resources));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<json> Play(const json& step, const ReadFile& read) override {
    const std::string operation = step.at("op");
    const auto match = graph::ParseMatchOperation(operation);
    if (match.ok()) return Match(*match, step, read);
    if (operation == "cancel") {
      held_.erase(step.at("jobid"));
      return json{{"ok", context_->Cancel(step.at("jobid")).ok()}};
    }
    if (operation == "find") return Find(step);
    if (operation == "info") return json::object();
    if (operation == "partial_cancel") {
      CancelPart(step);
      return json::object();
    }
    if (operation == "set_status") {
      const bool up = step.at("status") == "up";
      if (context_->SetUp(step.at("path"), up).ok()) up_[step.at("path")] = up;
      return json::object();
    }
    if (operation == "set_property") return SetProperty(step);
    return InvalidArgument("unknown operation \"{}\"", operation);
  }

 private:
  absl::StatusOr<json> Match(MatchOperation operation, const json& step, const ReadFile& read) {
    ASSIGN_OR_RETURN(const std::string text, read(step.at("jobspec")));
    const uint64_t job = step.value("jobid", uint64_t{0});
    const absl::StatusOr<Context::Placed> placed = context_->Match(operation, text, job);
    const absl::StatusCode code = placed.status().code();
    if (operation == MatchOperation::kSatisfiability) {
      return json{{"satisfiable", code != absl::StatusCode::kFailedPrecondition}};
    }
    // A jobspec that is refused was recorded as no match now.
    if (!placed.ok()) {
      const bool never = code == absl::StatusCode::kFailedPrecondition;
      return json{{"status", never ? "unsatisfiable" : "busy"}};
    }
    const bool holds = operation != MatchOperation::kWithoutAllocating &&
                       operation != MatchOperation::kWithoutAllocatingFuture;
    if (holds) held_[job] = placed->resources;
    const char* status = !holds ? "matched" : placed->reserved ? "reserved" : "allocated";
    return json{{"status", status},
                {"at", placed->at_s},
                {"resources", ResourcesOf(json::parse(placed->resources).at("scheduling"))}};
  }

  // What the job does not hold, resource-query refuses; the interface knows nothing but ranks.
  void CancelPart(const json& step) {
    const auto held = held_.find(step.at("jobid"));
    if (held == held_.end()) return;
    const auto vertices = RankByPath(json::parse(held->second).at("scheduling"));
    const json named = json::parse(step.at("resources").get<std::string>());
    for (const auto& [path, rank] : RankByPath(named)) {
      const auto vertex = vertices.find(path);
      if (vertex == vertices.end() || vertex->second != rank) return;
    }
    context_->CancelPart(held->first, RanksOf(named).dump()).IgnoreError();
  }

  absl::StatusOr<json> Find(const json& step) {
    const absl::StatusOr<std::string> found = context_->Find(step.at("criteria"));
    // Where Fluxion refused the criteria, nothing was recorded.
    const bool refused = absl::IsInvalidArgument(found.status());
    if (!found.ok() && !refused) return found.status();
    if (refused || found->empty()) return json{{"resources", json::array()}};
    return json{{"resources", ResourcesOf(json::parse(*found))}};
  }

  // The interface has no such call: the graph is loaded anew.
  absl::StatusOr<json> SetProperty(const json& step) {
    const std::string property = step.at("property");
    const size_t equals = property.find('=');
    for (json& node : graph_.at("graph").at("nodes")) {
      json& vertex = node.at("metadata");
      if (vertex.at("paths").at("containment") != step.at("path")) continue;
      vertex["properties"][property.substr(0, equals)] = property.substr(equals + 1);
    }
    RETURN_IF_ERROR(Rebuild());
    return json::object();
  }

  std::shared_ptr<const fluxion::Library> library_;
  json graph_;
  Context::Settings settings_;
  std::map<std::string, bool> up_;        // by path
  std::map<uint64_t, std::string> held_;  // R by job
  std::unique_ptr<Context> context_;
};

}  // namespace

MakeTarget MakeFluxionTargets(std::shared_ptr<const fluxion::Library> library) {
  return [library = std::move(library)](
             const json& scenario,
             const std::string& graph) -> absl::StatusOr<std::unique_ptr<ScenarioTarget>> {
    auto target = std::make_unique<FluxionTarget>(
        library,
        json::parse(graph),
        Context::Settings{.policy = scenario.at("policy"),
                          .traverser = scenario.at("traverser"),
                          .prune_filters = scenario.at("prune_filters")});
    RETURN_IF_ERROR(target->Rebuild());
    return target;
  };
}

}  // namespace fluxqueue::conformance
