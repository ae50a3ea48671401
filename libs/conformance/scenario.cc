#include "libs/conformance/scenario.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/find_criteria.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/jgf.h"
#include "libs/graph/request.h"

namespace fluxqueue::conformance {
namespace {

using graph::GeneralEngine;
using graph::MatchOperation;
using graph::MatchStatus;
using nlohmann::json;

std::string_view NameOf(MatchStatus status) {
  switch (status) {
    case MatchStatus::kAllocated:
      return "allocated";
    case MatchStatus::kReserved:
      return "reserved";
    case MatchStatus::kMatched:
      return "matched";
    case MatchStatus::kBusy:
      return "busy";
    case MatchStatus::kUnsatisfiable:
      return "unsatisfiable";
  }
  return {};
}

class NativeTarget final : public ScenarioTarget {
 public:
  explicit NativeTarget(std::unique_ptr<GeneralEngine> engine) : engine_(std::move(engine)) {}

  absl::StatusOr<json> Play(const json& step, const ReadFile& read) override {
    const std::string operation = step.at("op");
    const auto match = graph::ParseMatchOperation(operation);
    if (match.ok()) return Match(*match, step, read);
    if (operation == "cancel") return json{{"ok", engine_->Cancel(step.at("jobid"))}};
    if (operation == "find") return Find(step);
    if (operation == "info") return json::object();
    if (operation == "partial_cancel") return CancelPart(step);
    // Nothing is recorded of these two, also where Fluxion did not know the path.
    if (operation == "set_status") {
      engine_->SetUp(step.at("path").get<std::string>(), step.at("status") == "up").IgnoreError();
      return json::object();
    }
    if (operation == "set_property") {
      const std::string property = step.at("property");
      const size_t equals = property.find('=');
      engine_
          ->SetProperty(step.at("path").get<std::string>(),
                        property.substr(0, equals),
                        property.substr(equals + 1))
          .IgnoreError();
      return json::object();
    }
    return InvalidArgument("unknown operation \"{}\"", operation);
  }

 private:
  absl::StatusOr<json> Match(MatchOperation operation, const json& step, const ReadFile& read) {
    ASSIGN_OR_RETURN(const std::string text, read(step.at("jobspec")));
    const absl::StatusOr<graph::JobRequest> request = graph::ParseJobRequest(text);
    // resource-query prints an error for a jobspec that it refuses, and the recording took that for
    // no match now, and for nothing said against satisfiability.
    const bool asks = operation == MatchOperation::kSatisfiability;
    if (!request.ok()) return asks ? json{{"satisfiable", true}} : json{{"status", "busy"}};
    ASSIGN_OR_RETURN(const graph::MatchAnswer answer,
                     engine_->Match(operation, step.value("jobid", uint64_t{0}), *request));
    if (asks) return json{{"satisfiable", answer.status == MatchStatus::kMatched}};
    json given = {{"status", NameOf(answer.status)}};
    if (answer.holding.vertices.empty()) return given;
    given["at"] = answer.holding.at_s;
    std::vector<json> resources;
    for (const graph::HeldVertex& held : answer.holding.vertices) {
      resources.push_back(
          json::array({engine_->graph().PathOf(held.vertex), held.amount, held.exclusive}));
    }
    std::sort(resources.begin(), resources.end());
    given["resources"] = std::move(resources);
    return given;
  }

  absl::StatusOr<json> Find(const json& step) const {
    const auto criteria = graph::FindCriteria::Parse(step.at("criteria").get<std::string>());
    // Where Fluxion refused the criteria, nothing was recorded.
    if (!criteria.ok()) return json{{"resources", json::array()}};
    std::vector<json> resources;
    for (const graph::VertexId v : engine_->FindVertices(*criteria)) {
      resources.push_back(
          json::array({engine_->graph().PathOf(v), engine_->graph().vertex(v).size, true}));
    }
    std::sort(resources.begin(), resources.end());
    return json{{"resources", std::move(resources)}};
  }

  // Nothing is recorded of it but what later steps show, also where Fluxion refused it.
  absl::StatusOr<json> CancelPart(const json& step) {
    if (step.at("format") != "jgf") {
      return InvalidArgument("partial_cancel: unknown format {}", step.at("format").dump());
    }
    const auto vertices =
        graph::FindJgfVertices(step.at("resources").get<std::string>(), engine_->graph());
    if (vertices.ok()) engine_->CancelPart(step.at("jobid"), *vertices).status().IgnoreError();
    return json::object();
  }

  std::unique_ptr<GeneralEngine> engine_;
};

void Compare(size_t number, const json& step, const json& given, ScenarioResult* result) {
  const json& expected = step.at("expect");
  if (given == expected) return;
  result->same_placement = false;
  if (!result->first.has_value()) {
    result->first = {number, step.at("op"), expected.dump(), given.dump()};
  }
  json expected_outcome = expected;
  json given_outcome = given;
  expected_outcome.erase("resources");
  given_outcome.erase("resources");
  if (expected_outcome != given_outcome) result->same_outcome = false;
}

absl::StatusOr<ScenarioResult> Play(const json& scenario,
                                    const ReadFile& read,
                                    const MakeTarget& make) {
  ASSIGN_OR_RETURN(const std::string text, read(scenario.at("graph")));
  ASSIGN_OR_RETURN(const std::unique_ptr<ScenarioTarget> target, make(scenario, text));
  ScenarioResult result;
  result.what = scenario.at("what");
  for (const json& step : scenario.at("steps")) {
    ++result.steps;
    ASSIGN_OR_RETURN(const json given, target->Play(step, read));
    Compare(result.steps, step, given, &result);
  }
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScenarioTarget>> MakeNativeTarget(const json& scenario,
                                                                 const std::string& graph) {
  ASSIGN_OR_RETURN(graph::ResourceGraph resources, graph::ParseJgf(graph));
  const std::string policy = scenario.at("policy");
  const std::string filters = scenario.at("prune_filters");
  const std::string traverser = scenario.at("traverser");
  ASSIGN_OR_RETURN(
      std::unique_ptr<GeneralEngine> engine,
      GeneralEngine::Make(std::move(resources),
                          {.policy = policy, .prune_filters = filters, .traverser = traverser}));
  return std::make_unique<NativeTarget>(std::move(engine));
}

absl::StatusOr<ScenarioResult> PlayScenario(std::string_view line,
                                            const ReadFile& read,
                                            const MakeTarget& make) {
  try {
    return Play(json::parse(line), read, make);
  } catch (const json::exception& error) {
    return InvalidArgument("a scenario of another form than documented: {}", error.what());
  }
}

}  // namespace fluxqueue::conformance
