#include "libs/conformance/better_answer.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/graph/idset.h"

namespace fluxqueue::conformance {
namespace {

using nlohmann::json;

constexpr size_t kMaxRanges = 10'000;

bool Is(const RecordedCall& call, std::string_view function) {
  return call.call.at("fn") == function;
}

bool IsMatch(const RecordedCall& call) {
  return Is(call, "match_with_jobid");
}

bool Succeeded(const json& out) {
  return out.value("rc", -1) == 0;
}

bool FailedWith(const json& out, std::initializer_list<std::string_view> errors) {
  return !Succeeded(out) &&
         std::find(errors.begin(), errors.end(), out.value("errno", "")) != errors.end();
}

// Nothing was found, now or ever; R_lite's writer makes EINVAL of it (see below).
bool FoundNothing(const RecordedCall& call, const json& out) {
  return FailedWith(out, {"EBUSY", "ENODEV"}) ||
         (call.options.at("match_format") == "rlite" && FailedWith(out, {"EINVAL"}));
}

const json* GraphOf(const json& resources) {
  if (!resources.is_object()) return nullptr;
  if (resources.contains("graph")) return &resources.at("graph");
  const json::json_pointer inner("/scheduling/graph");
  return resources.contains(inner) ? &resources.at(inner) : nullptr;
}

void AddIds(const json& entry, std::set<std::string>* held) {
  std::vector<graph::IdRange> ranks;
  if (!graph::ParseIdset(entry.at("rank").get<std::string>(), kMaxRanges, &ranks).ok()) return;
  for (const auto& [type, text] : entry.at("children").items()) {
    std::vector<graph::IdRange> ids;
    if (!graph::ParseIdset(text.get<std::string>(), kMaxRanges, &ids).ok()) return;
    for (const auto& [first_rank, last_rank] : ranks) {
      for (int64_t rank = first_rank; rank <= last_rank; ++rank) {
        for (const auto& [first, last] : ids) {
          for (int64_t id = first; id <= last; ++id) {
            held->insert(std::to_string(rank) + "/" + type + std::to_string(id));
          }
        }
      }
    }
  }
}

// What R names, one by one: by rank, and by vertex where it has a graph (with a mark when held).
std::set<std::string> HeldIn(const json& resources) {
  std::set<std::string> held;
  const json* lite = &resources;
  const json::json_pointer inner("/execution/R_lite");
  if (resources.is_object() && resources.contains(inner)) lite = &resources.at(inner);
  if (lite->is_array()) {
    for (const json& entry : *lite) AddIds(entry, &held);
  }
  if (const json* graph = GraphOf(resources); graph != nullptr) {
    for (const json& node : graph->at("nodes")) {
      const json& metadata = node.at("metadata");
      const std::string path = metadata.at("paths").dump();
      held.insert(path);
      if (metadata.value("exclusive", false)) held.insert(path + "!");
    }
  }
  return held;
}

bool BothFound(const RecordedCall& call) {
  return IsMatch(call) && Succeeded(call.expected) && Succeeded(call.given);
}

bool EdgesToNowhere(const RecordedCall& call) {
  if (!BothFound(call)) return false;
  const json* graph = GraphOf(call.expected.at("R"));
  if (graph == nullptr) return false;
  std::set<std::string> listed;
  for (const json& node : graph->at("nodes")) listed.insert(node.at("id"));
  const json& edges = graph->at("edges");
  return std::any_of(edges.begin(), edges.end(), [&listed](const json& edge) {
    return !listed.contains(edge.at("source")) || !listed.contains(edge.at("target"));
  });
}

bool MoreThanAsked(const RecordedCall& call) {
  if (!BothFound(call) || !(call.history.cloned || call.history.refused_exclusive)) return false;
  const std::set<std::string> expected = HeldIn(call.expected.at("R"));
  const std::set<std::string> given = HeldIn(call.given.at("R"));
  return expected.size() > given.size() &&
         std::includes(expected.begin(), expected.end(), given.begin(), given.end());
}

bool RliteOfNothing(const RecordedCall& call) {
  if (!IsMatch(call) || call.options.at("match_format") != "rlite") return false;
  const bool nothing = Succeeded(call.given) ? call.given.at("R").is_string()
                                             : FailedWith(call.given, {"EBUSY", "ENODEV"});
  return nothing && FailedWith(call.expected, {"EINVAL"});
}

bool CountOfZero(const RecordedCall& call) {
  if (!IsMatch(call) || !FailedWith(call.given, {"EINVAL"})) return false;
  return FailedWith(call.expected, {"EBUSY", "ENODEV"}) &&
         call.call.at("args").at("jobspec").get_ref<const std::string&>().find("\"count\": 0") !=
             std::string::npos;
}

bool NoReason(const RecordedCall& call) {
  return FailedWith(call.expected, {"0"}) && !Succeeded(call.given);
}

bool Restored(const RecordedCall& call) {
  return Is(call, "update_allocate") && FailedWith(call.expected, {"0"}) && Succeeded(call.given);
}

bool RootAlone(const RecordedCall& call) {
  return Is(call, "find") && FailedWith(call.expected, {"ENOENT"}) && Succeeded(call.given) &&
         call.given.at("R").is_object() && call.given.at("R").at("graph").at("edges").empty();
}

bool SharedJobs(const RecordedCall& call) {
  return call.history.cloned &&
         (Is(call, "info") || Is(call, "cancel") || Is(call, "partial_cancel"));
}

// Later than could be, or not at all.
bool NotCounted(const RecordedCall& call) {
  if (!IsMatch(call) || !(call.history.grown || call.history.shrunk)) return false;
  if (FoundNothing(call, call.expected)) {
    return Succeeded(call.given) || FailedWith(call.given, {"EBUSY", "ENODEV"});
  }
  return BothFound(call) && call.expected.at("at") > call.given.at("at");
}

bool OrderAfterGrowth(const RecordedCall& call) {
  const std::string policy = call.options.at("matcher_policy");
  return call.history.grown && policy.starts_with("first") && BothFound(call) &&
         call.expected.at("at") == call.given.at("at");
}

bool DamagedClone(const RecordedCall& call) {
  if (!IsMatch(call) || !call.history.cloned || !Succeeded(call.given)) return false;
  return FoundNothing(call, call.expected) || call.history.shrunk;
}

constexpr std::array<BetterAnswer, 11> kBetterAnswers = {{
    {"rlite of nothing",
     "match format rlite: where there is no R to write (busy, unsatisfiable, or satisfiable), "
     "Fluxion says EINVAL whatever was found out",
     RliteOfNothing},
    {"a count of 0", "Fluxion looks for it and never finds it; it is refused here", CountOfZero},
    {"restore of rv1_nosched",
     "Fluxion finds no vertex where a level lies between cluster and node; it is restored here",
     Restored},
    {"no errno", "Fluxion fails without a reason; there is one here", NoReason},
    {"one vertex", "Fluxion cannot write a graph without edges and says ENOENT", RootAlone},
    {"jobs of clones", "Fluxion's clones and their origin share one list of jobs", SharedJobs},
    {"edges to nowhere", "R's graph has an edge to a vertex that it does not list", EdgesToNowhere},
    {"more than asked",
     "what earlier calls left in a clone, or a refused jobspec left behind, is held besides",
     MoreThanAsked},
    {"not counted",
     "Fluxion goes on with the number of nodes, and the sums, from before a subgraph came or went",
     NotCounted},
    {"order after growth",
     "after add_subgraph `first` goes by another order in Fluxion; why is not known",
     OrderAfterGrowth},
    {"damaged clone",
     "what was cancelled on a clone, or is left after remove_subgraph on it, is not found there",
     DamagedClone},
}};

}  // namespace

std::span<const BetterAnswer> BetterAnswers() {
  return kBetterAnswers;
}

}  // namespace fluxqueue::conformance
