#include "services/queue/domain/flux_job_view.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/clock.h"
#include "libs/base/text.h"
#include "libs/kubernetes/event.h"
#include "libs/kubernetes/json_text.h"
#include "libs/model/job_state.h"
#include "libs/model/workload.h"

namespace fluxqueue::queue {
namespace {

using events::v1::JobFact;
using json = nlohmann::json;
using model::JobState;

JobState StateOf(const JobFact& fact) {
  return static_cast<JobState>(fact.state());
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

json Time(int64_t ms) {
  return ms == 0 ? json(nullptr) : json(FormatTime(Millis(ms)));
}

// As the column START shows it: whole seconds.
json TimeInSeconds(int64_t ms) {
  return ms == 0 ? json(nullptr) : json(FormatSeconds(Millis(ms)));
}

// The CRD's limit on texts.
constexpr size_t kMaxMessage = 4000;

// "0": unlimited.
std::string Duration(int64_t ms) {
  if (ms == 0) return "0";
  return ms % 1000 == 0 ? fmt::format("{}s", ms / 1000) : fmt::format("{}ms", ms);
}

// As the column SLOTS shows it: of an elastic job what it holds and the most.
std::string SlotsText(const JobFact& fact) {
  return fact.max_slots() == 0 ? fmt::format("{}", fact.slots())
                               : fmt::format("{}/{}", fact.slots(), fact.max_slots());
}

json Spec(const JobFact& fact, const FluxJobDetails& details) {
  const events::v1::Workload& workload = fact.workload();
  json spec = {{"jobId", fact.job_id()},
               {"pool", fact.pool()},
               {"workload",
                {{"apiVersion", workload.api_version()},
                 {"kind", workload.kind()},
                 {"name", workload.name()},
                 {"uid", workload.uid()}}},
               {"queue", fact.queue()},
               {"priority", fact.priority()},
               {"slots", fact.max_slots() == 0 ? fact.slots() : fact.max_slots()},
               {"duration", Duration(fact.duration_ms())}};
  if (fact.min_slots() != 0) spec["minSlots"] = fact.min_slots();
  json jobspec = json::parse(details.jobspec, nullptr, /*allow_exceptions=*/false);
  if (jobspec.is_object()) spec["jobspec"] = std::move(jobspec);
  return spec;
}

json Allocation(const FluxJobDetails& details) {
  if (details.slots.empty()) return nullptr;
  json nodes = json::array();
  std::map<std::string, size_t> places;
  for (const auto& [slot, node] : details.slots) {
    const auto [place, added] = places.try_emplace(node, nodes.size());
    if (added) nodes.push_back({{"node", node}, {"slots", json::array()}});
    nodes[place->second]["slots"].push_back(slot);
  }
  return nodes;
}

json Transitions(const FluxJobDetails& details) {
  json transitions = json::array();
  for (const FluxJobDetails::Transition& transition : details.transitions) {
    transitions.push_back({{"state", transition.state},
                           {"reason", transition.reason},
                           {"time", Time(transition.time_ms)},
                           {"attempt", transition.attempt}});
  }
  return transitions;
}

json Condition(const char* type, bool holds, const JobFact& fact) {
  return {{"type", type},
          {"status", holds ? "True" : "False"},
          {"reason", fact.reason().empty() ? std::string(Name(StateOf(fact))) : fact.reason()},
          {"message", Cut(fact.message(), kMaxMessage)},
          {"lastTransitionTime", FormatTime(Millis(fact.time_ms()))}};
}

json Conditions(const JobFact& fact) {
  const JobState state = StateOf(fact);
  const bool bound = state == JobState::kBound || state == JobState::kRunning;
  return json::array({Condition("Queued", model::kWaitingStates.Has(state), fact),
                      Condition("Allocated", state == JobState::kAllocated || bound, fact),
                      Condition("Bound", bound, fact),
                      Condition("Finished", model::IsTerminal(state), fact)});
}

// Of an expected start.
json Promise(const JobFact& fact) {
  const bool expected = StateOf(fact) == JobState::kPending && fact.start_ms() != 0;
  return expected ? json(fact.firm() ? "Firm" : "Forecast") : json(nullptr);
}

json Status(const JobFact& fact, int64_t position, const FluxJobDetails& details) {
  const std::string nodes = NodesText(details);
  return {{"state", Name(StateOf(fact))},
          {"reason", fact.reason()},
          {"message", Cut(fact.message(), kMaxMessage)},
          {"position", position == 0 ? json(nullptr) : json(position)},
          {"attempt", fact.attempt()},
          {"version", fact.version()},
          {"start", TimeInSeconds(fact.start_ms())},
          {"promise", Promise(fact)},
          {"slots", SlotsText(fact)},
          {"nodes", nodes.empty() ? json(nullptr) : json(nodes)},
          {"allocation", Allocation(details)},
          {"transitions", Transitions(details)},
          {"conditions", Conditions(fact)}};
}

// Null means absent in an object, and "take away" in a merge patch.
void DropNulls(json* object) {
  for (auto it = object->begin(); it != object->end();) {
    it = it->is_null() ? object->erase(it) : std::next(it);
  }
}

struct EventText {
  const char* type;
  const char* reason;
  const char* action;
};

// What there is of the workload in the cluster: of a group its first pod.
kubernetes::ObjectReference ObjectOf(const events::v1::Workload& workload) {
  if (!model::IsGroup(workload.kind())) {
    return {workload.api_version(),
            workload.kind(),
            workload.namespace_(),
            workload.name(),
            workload.uid()};
  }
  return {"v1", "Pod", workload.namespace_(), workload.leader(), workload.uid()};
}

std::string EventOn(const JobFact& fact,
                    std::string name,
                    const EventText& text,
                    std::string note) {
  return kubernetes::EventText(
      {.name = std::move(name),
       .component = "queue",
       .instance = "fluxqueue-queue",
       .type = text.type,
       .reason = text.reason,
       .action = text.action,
       .note = std::move(note),
       .regarding = ObjectOf(fact.workload()),
       .at = std::chrono::system_clock::time_point(Millis(fact.time_ms()))});
}

EventText TextOf(JobStep step) {
  switch (step) {
    case JobStep::kNone:
      break;
    case JobStep::kQueued:
      return {"Normal", "Queued", "Scheduling"};
    case JobStep::kReserved:
      return {"Normal", "Reserved", "Scheduling"};
    case JobStep::kAllocated:
      return {"Normal", "Allocated", "Scheduling"};
    case JobStep::kBound:
      return {"Normal", "Bound", "Binding"};
    case JobStep::kNotStarted:
      return {"Warning", "NotStarted", "Binding"};
  }
  return {nullptr, nullptr, nullptr};
}

std::string NoteOf(JobStep step,
                   const JobFact& fact,
                   int64_t position,
                   const FluxJobDetails& details) {
  if (step == JobStep::kNotStarted) {
    return fmt::format(
        "it has {} since {}, and does not run: the Events of its pods say why, or, where there are "
        "none, those of what makes them{}",
        NodesText(details),
        FormatSeconds(Millis(fact.time_ms())),
        StateOf(fact) == JobState::kBound ? ". It keeps its slots until it runs or is deleted"
                                          : "");
  }
  if (step > JobStep::kReserved) return fmt::format("on {}", NodesText(details));
  std::string note = fmt::format("in queue {}", fact.queue());
  if (position != 0) note = fmt::format("place {} {}", position, note);
  if (step == JobStep::kReserved) {
    note = fmt::format("starts by {}, {}", FormatSeconds(Millis(fact.start_ms())), note);
  }
  const std::string& why = fact.message().empty() ? fact.reason() : fact.message();
  return why.empty() ? note : fmt::format("{}: {}", note, why);
}

EventText EventFor(const JobFact& fact) {
  if (StateOf(fact) == JobState::kRejected) return {"Warning", "Refused", "Scheduling"};
  if (StateOf(fact) == JobState::kRunning && fact.reason() == "Overran") {
    return {"Warning", "Overran", "Running"};
  }
  if (!fact.vacate().empty() && fact.reason() == "Shrinking") {
    return {"Warning", "Shrinking", "Stopping"};
  }
  if (StateOf(fact) != JobState::kStopping && fact.reason() == "SlotLost") {
    return {"Warning", "SlotLost", "Placing"};
  }
  if (StateOf(fact) == JobState::kStopping && fact.after_stop() == JobFact::AFTER_STOP_REQUEUE) {
    return {"Warning", "Requeued", "Stopping"};
  }
  if (StateOf(fact) == JobState::kStopping && fact.after_stop() == JobFact::AFTER_STOP_FAIL) {
    return {"Warning", "Failed", "Stopping"};
  }
  return {nullptr, nullptr, nullptr};
}

}  // namespace

std::string FluxJobName(const events::v1::Workload& workload) {
  return fmt::format("{}-{}", Lower(workload.kind()), workload.name());
}

std::string WorkloadName(const std::string& flux_job) {
  return flux_job.substr(flux_job.find('-') + 1);
}

std::string NodesText(const FluxJobDetails& details) {
  std::set<std::string_view> distinct;
  for (const auto& [slot, node] : details.slots) distinct.insert(node);
  if (distinct.empty()) return "";
  if (distinct.size() == 1) return std::string(*distinct.begin());
  return fmt::format(
      "{}…{} ({})", details.slots.front().second, details.slots.back().second, distinct.size());
}

namespace {

json Owners(const events::v1::Workload& workload) {
  const kubernetes::ObjectReference owner = ObjectOf(workload);
  return json::array({{{"apiVersion", owner.api_version},
                       {"kind", owner.kind},
                       {"name", owner.name},
                       {"uid", owner.uid}}});
}

}  // namespace

std::string FluxJobObject(const JobFact& fact, int64_t position, const FluxJobDetails& details) {
  const events::v1::Workload& workload = fact.workload();
  json status = Status(fact, position, details);
  DropNulls(&status);
  const json object = {{"apiVersion", "fluxqueue.io/v1alpha1"},
                       {"kind", "FluxJob"},
                       {"metadata",
                        {{"name", FluxJobName(workload)},
                         {"namespace", workload.namespace_()},
                         {"ownerReferences", Owners(workload)}}},
                       {"spec", Spec(fact, details)},
                       {"status", std::move(status)}};
  return kubernetes::JsonText(object);
}

std::string FluxJobPatch(const JobFact& fact,
                         int64_t position,
                         const FluxJobDetails& details,
                         const std::string& resource_version) {
  // Its owner again: a workload that is deleted as an orphan takes it away, and it has to go then.
  return kubernetes::JsonText(
      {{"metadata",
        {{"ownerReferences", Owners(fact.workload())}, {"resourceVersion", resource_version}}},
       {"spec", Spec(fact, details)},
       {"status", Status(fact, position, details)}});
}

std::string EventObject(const JobFact& fact) {
  if (model::IsClaim(fact.workload().kind())) return "";  // there is no object to write it on
  const EventText text = EventFor(fact);
  if (text.reason == nullptr) return "";
  return EventOn(fact,
                 fmt::format("{}.{}", fact.job_id(), fact.version()),
                 text,
                 fact.message().empty() ? fact.reason() : fact.message());
}

std::string StepEventObject(JobStep step,
                            const JobFact& fact,
                            int64_t position,
                            const FluxJobDetails& details) {
  const EventText text = TextOf(step);
  std::string name = fmt::format("{}.{}-{}", fact.job_id(), fact.attempt(), text.reason);
  return EventOn(fact, Lower(std::move(name)), text, NoteOf(step, fact, position, details));
}

}  // namespace fluxqueue::queue
