#include "libs/simulation/history.h"

#include <algorithm>
#include <set>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/graph/jobspec.h"
#include "libs/kubernetes/node.h"
#include "libs/model/job_of.h"
#include "libs/verify/event_file.h"

namespace fluxqueue::simulation {
namespace {

using events::v1::Envelope;
using verify::EventLine;

// What a what-if takes from the log.
bool FromOutside(const Envelope& message) {
  switch (message.event_case()) {
    case Envelope::kJobSubmitted:
    case Envelope::kJobUpdated:
    case Envelope::kJobWithdrawn:
    case Envelope::kCommandAccepted:
    case Envelope::kQueueConfigured:
    case Envelope::kPoolConfigured:
    case Envelope::kWindowConfigured:
    case Envelope::kNodeUpserted:
    case Envelope::kNodeGone:
    case Envelope::kInventorySynced:
      return true;
    default:
      return false;
  }
}

// A job as the log tells of it.
struct Seen {
  trace::TraceJob job{};
  std::optional<Millis> submitted{};
  std::optional<Millis> held_since{};  // at the latest
  std::optional<Millis> ended{};
};

class Collector {
 public:
  void Read(const EventLine& line) {
    const Envelope& message = line.message;
    last_ = std::max(last_, line.time);
    switch (message.event_case()) {
      case Envelope::kJobSubmitted:
        return Submit(message.job_submitted().job_id(), message.job_submitted().spec(), line.time);
      case Envelope::kJobUpdated:
        if (const auto* spec = model::SpecOf(message.job_updated()); spec != nullptr) {
          Specify(*spec, &seen_[message.job_updated().job_id()].job);
        }
        return;
      case Envelope::kCommandAccepted:
        if (message.command_accepted().has_submit_claim()) {
          const auto& claim = message.command_accepted().submit_claim();
          Submit(claim.job_id(), claim.spec(), line.time);
        }
        return;
      case Envelope::kCycleAnswered:
        for (const events::v1::Outcome& outcome : message.cycle_answered().outcomes()) {
          if (outcome.kind() == events::v1::Outcome::KIND_ALLOCATED) {
            seen_[outcome.job_id()].held_since = line.time;
          }
        }
        return;
      case Envelope::kJobStarted:
        seen_[message.job_started().job_id()].held_since = line.time;
        return;
      case Envelope::kJobEnded:
        seen_[message.job_ended().job_id()].ended = line.time;
        return;
      case Envelope::kNodeUpserted:
        nodes_[message.node_upserted().node().name()] = message.node_upserted().node();
        return;
      default:
        return;
    }
  }

  void Fill(History* history) {
    for (const auto& [name, node] : nodes_) {
      history->machine.nodes.push_back(node);
      history->machine.offers.push_back({name, kubernetes::ToAmounts(node.allocatable()), ""});
    }
    for (const std::string& id : order_) {
      Seen& seen = seen_[id];
      if (!seen.held_since || seen.job.slots == 0) {
        ++history->workload.without_run_time;
        continue;
      }
      const Millis first = *seen_[order_.front()].submitted;
      const Millis run = std::max(Millis(1), seen.ended.value_or(last_) - *seen.held_since);
      seen.job.name = id;
      seen.job.submit_s = Seconds(*seen.submitted - first);
      seen.job.run_s = Seconds(run);
      history->jobs.emplace(id, history->workload.jobs.size());
      history->run_times.push_back(seen.ended ? std::optional(run) : std::nullopt);
      history->workload.jobs.push_back(std::move(seen.job));
    }
  }

 private:
  static double Seconds(Millis time) { return static_cast<double>(time.count()) / 1000; }

  void Submit(const std::string& id, const events::v1::PartSpec& spec, Millis now) {
    Seen& seen = seen_[id];
    if (seen.submitted) return;
    seen.submitted = now;
    Specify(spec, &seen.job);
    order_.push_back(id);
  }

  // A jobspec that is bad asks for no slots.
  static void Specify(const events::v1::PartSpec& spec, trace::TraceJob* job) {
    const absl::StatusOr<graph::Jobspec> jobspec = graph::ParseJobspec(spec.jobspec());
    job->requests.clear();
    job->slots = jobspec.ok() ? jobspec->slots : 0;
    if (!jobspec.ok()) return;
    const bool equal = jobspec->groups.size() == 1;
    for (const graph::SlotGroup& group : jobspec->groups) {
      for (const graph::Amount& amount : group.request) {
        job->requests[amount.resource] += amount.amount * (equal ? 1 : group.slots);
      }
    }
    if (!equal) job->slots = 1;  // slots that differ count as one that is as large
  }

  std::map<std::string, Seen> seen_;
  std::vector<std::string> order_;  // of submission
  std::map<std::string, events::v1::Node> nodes_;
  Millis last_{0};
};

constexpr char kHostname[] = "kubernetes.io/hostname";

// The machine of the log, and more nodes like those that it has.
Machine MachineWith(const Machine& recorded, uint32_t more) {
  Machine machine = recorded;
  for (uint32_t i = 0; i < more && !recorded.nodes.empty(); ++i) {
    const size_t from = i % recorded.nodes.size();
    events::v1::Node& node = machine.nodes.emplace_back(recorded.nodes[from]);
    node.set_name(fmt::format("more-{}", i + 1));
    node.set_uid(node.name());
    node.set_ready(true);
    node.set_unschedulable(false);
    node.clear_foreign();
    node.clear_foreign_pods();
    for (events::v1::Label& label : *node.mutable_labels()) {
      if (label.key() == kHostname) label.set_value(node.name());
    }
    machine.offers.push_back(recorded.offers[from]);
    machine.offers.back().name = node.name();
  }
  return machine;
}

class LogScript final : public Script {
 public:
  // `machine`: the history's, with those that are more behind it. All must outlive it.
  LogScript(const History& history, const Override& change, const Machine& machine)
      : history_(history),
        change_(change),
        machine_(machine),
        next_node_(history.machine.nodes.size()) {
    std::set<std::string> over;
    for (size_t i = 0; i < history.log.size(); ++i) {
      const Envelope& message = history.log[i].message;
      if (message.has_job_ended()) over.insert(message.job_ended().job_id());
      if (!FromOutside(message) || !history.log[i].buried.empty()) continue;
      const std::string& job = model::JobOf(message);
      if (job.empty() || (history.jobs.contains(job) && !over.contains(job))) kept_.push_back(i);
    }
  }

  std::optional<Millis> NextTime() const override {
    if (next_ == kept_.size()) return std::nullopt;
    return history_.log[kept_[next_]].time;
  }

  Envelope Take() override {
    if (IsNodeDue()) return TakeNode();
    Envelope message = history_.log[kept_[next_++]].message;
    if (message.has_queue_configured()) {
      events::v1::QueueConfigured* queue = message.mutable_queue_configured();
      if (change_.strategy) queue->set_strategy(*change_.strategy);
      if (change_.queue_depth) queue->set_queue_depth(*change_.queue_depth);
      if (change_.reservation_depth) queue->set_reservation_depth(*change_.reservation_depth);
    }
    if (message.has_pool_configured() && change_.policy) {
      message.mutable_pool_configured()->set_policy(*change_.policy);
    }
    return message;
  }

  std::optional<Millis> RunTimeOf(size_t job) const override { return history_.run_times[job]; }

 private:
  // Behind the nodes that the log begins with.
  bool IsNodeDue() const {
    return next_node_ < machine_.nodes.size() &&
           history_.log[kept_[next_]].message.has_inventory_synced();
  }
  Envelope TakeNode() {
    Envelope message;
    message.set_pool(history_.pool);
    *message.mutable_node_upserted()->mutable_node() = machine_.nodes[next_node_++];
    return message;
  }

  const History& history_;
  const Override change_;
  const Machine& machine_;
  std::vector<size_t> kept_;  // of the log
  size_t next_ = 0;
  size_t next_node_;  // of the machine, of those that the log does not have
};

std::vector<std::string> Ids(const Workload& workload) {
  std::vector<std::string> ids;
  for (const trace::TraceJob& job : workload.jobs) ids.push_back(job.name);
  return ids;
}

}  // namespace

absl::StatusOr<History> MakeHistory(std::vector<EventLine> lines, std::string_view name) {
  History history;
  Collector collector;
  for (EventLine& line : lines) {
    if (line.message.has_job_fact()) {
      history.facts.push_back(std::move(line));
    } else {
      history.pool = line.message.pool();
      collector.Read(line);
      history.log.push_back(std::move(line));
    }
  }
  collector.Fill(&history);
  if (history.workload.jobs.empty()) return InvalidArgument("{}: no job in it has run", name);
  return history;
}

absl::StatusOr<History> ReadHistory(std::string_view text, std::string_view file) {
  std::vector<EventLine> lines;
  verify::EventFileReader reader(file);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ASSIGN_OR_RETURN(std::optional<EventLine> event, reader.Read(line));
    if (event.has_value()) lines.push_back(*std::move(event));
  }
  if (!reader.header().whole) {
    return InvalidArgument("{}: it does not begin where its pool began, so it cannot be played",
                           file);
  }
  return MakeHistory(std::move(lines), file);
}

absl::StatusOr<Recorded> ReplayHistory(const History& history) {
  verify::FactLog facts;
  for (const EventLine& fact : history.facts) facts.Fold(fact);
  verify::Replayer replayer(history.log.front().partition, facts, {});
  Witness witness(Ids(history.workload));
  replayer.OnFact([&](const events::v1::JobFact& fact, Millis now) {
    if (const auto job = witness.Find(fact.job_id())) witness.Hear(*job, fact, now);
  });
  for (const EventLine& line : history.log) RETURN_IF_ERROR(replayer.Fold(line));
  Recorded recorded;
  recorded.replay = replayer.Finish().front();
  recorded.result.name = "as recorded";
  recorded.result.setting = {.strategy = "as recorded", .policy = "as recorded"};
  recorded.result.outcomes = witness.Take();
  recorded.result.summary = Summarise(history.workload, history.machine, recorded.result.outcomes);
  return recorded;
}

std::string Override::Name() const {
  return fmt::format("{}, {}{}",
                     strategy.value_or("strategy as recorded"),
                     policy.value_or("policy as recorded"),
                     more_nodes == 0 ? "" : fmt::format(", {} more nodes", more_nodes));
}

absl::StatusOr<Result> WhatIf(const History& history,
                              const Override& change,
                              const Simulator::Progress& progress) {
  Result result{.name = change.Name()};
  result.setting.strategy = change.strategy.value_or("as recorded");
  result.setting.policy = change.policy.value_or("as recorded");
  const Machine machine = MachineWith(history.machine, change.more_nodes);
  std::vector<std::string> nodes;
  for (const events::v1::Node& node : machine.nodes) nodes.push_back(node.name());
  LogScript script(history, change, machine);
  Simulator simulator(history.pool, Ids(history.workload), nodes, script);
  ASSIGN_OR_RETURN(result.outcomes, simulator.Run(progress));
  result.summary = Summarise(history.workload, machine, result.outcomes);
  return result;
}

}  // namespace fluxqueue::simulation
