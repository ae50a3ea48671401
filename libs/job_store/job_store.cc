#include "libs/job_store/job_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"
#include "libs/queue_core/job.h"
#include "libs/queue_core/queue_core.h"
#include "libs/queue_core/queue_spec.h"

namespace fluxqueue::job_store {
namespace {

using postgres::Exec;
using postgres::Statement;

constexpr size_t kNamesForNearMatches = 5000;

#define FLUXQUEUE_JOB_COLUMNS                                                                     \
  "job_id, pool, queue, namespace, name, kind, state, version, attempt, reason, message, slots, " \
  "priority, created_ms, start_ms, updated_ms, most_slots, username"
#define FLUXQUEUE_ENDED "state IN ('Succeeded', 'Failed', 'Cancelled', 'Rejected')"

constexpr Statement kJobs{
    "cli_list_jobs",
    "SELECT " FLUXQUEUE_JOB_COLUMNS
    ", count(*) OVER () FROM queue.jobs "
    "WHERE ($1 = '' OR queue = $1) AND ($2 = '' OR state = $2) AND ($3 = '' OR namespace = $3) "
    "  AND ($4::boolean OR NOT " FLUXQUEUE_ENDED
    ") AND ($6 = '' OR username = $6) AND (live OR updated_ms >= $7) AND created_ms < $8 "
    "ORDER BY created_ms DESC, job_id DESC LIMIT nullif($5::bigint, 0)"};
constexpr Statement kFind{"cli_find_job",
                          "SELECT " FLUXQUEUE_JOB_COLUMNS
                          " FROM queue.jobs "
                          "WHERE job_id = $1 OR name = $1 OR namespace || '/' || name = $1 "
                          "ORDER BY job_id = $1 DESC, created_ms DESC, updated_ms DESC LIMIT 100"};
constexpr Statement kOfIds{"cli_jobs_of_ids",
                           "SELECT " FLUXQUEUE_JOB_COLUMNS
                           " FROM queue.jobs WHERE job_id = ANY($1::text[])"};
constexpr Statement kNames{
    "cli_job_names",
    "SELECT CASE WHEN namespace = '' THEN name ELSE namespace || '/' || name END FROM queue.jobs "
    "ORDER BY created_ms DESC LIMIT $1"};
constexpr Statement kEvents{
    "cli_job_events",
    "SELECT version, time_ms, state, attempt, reason, message FROM "
    "  (SELECT * FROM queue.job_events WHERE job_id = $1 ORDER BY version DESC LIMIT 500) AS last "
    "ORDER BY version"};
constexpr Statement kPromises{
    "cli_promises",
    "SELECT told_ms, coalesce(start_ms, 0), firm, kept, cause, cause_by FROM "
    "  (SELECT * FROM queue.promises WHERE job_id = $1 ORDER BY version DESC LIMIT 100) AS last "
    "ORDER BY version"};
constexpr Statement kPlacements{"cli_placements",
                                "SELECT job_id, attempt, placement FROM matcher.allocations "
                                "WHERE job_id = ANY($1::text[]) ORDER BY job_id, attempt, part"};
constexpr Statement kParts{"cli_parts",
                           "SELECT part, placement, released FROM matcher.allocations "
                           "WHERE job_id = $1 AND attempt = $2 ORDER BY part"};
constexpr Statement kPods{
    "cli_pods",
    "SELECT part, slot, namespace || '/' || pod_name, state FROM binder.slots "
    "WHERE job_id = $1 AND attempt = $2"};
constexpr Statement kQueues{"cli_queues",
                            "SELECT pool, queue, row FROM queue.queues ORDER BY pool, queue"};
constexpr Statement kCounts{
    "cli_counts",
    "SELECT pool, queue, state, count(*) FROM queue.jobs GROUP BY pool, queue, state"};
constexpr Statement kHeld{"cli_held",
                          "SELECT pool, queue, row FROM queue.jobs "
                          "WHERE live AND state IN ('Allocated', 'Bound', 'Running', 'Stopping')"};
constexpr Statement kPasts{"cli_pasts",
                           "SELECT pool, row, (extract(epoch FROM now()) * 1000)::bigint "
                           "FROM queue.usage WHERE kind = 'queue'"};
constexpr Statement kLiveCounts{
    "job_store_live_counts",
    "SELECT pool, queue, state, count(*) FROM queue.jobs WHERE live GROUP BY pool, queue, state"};
// What the core wants of a pool (services/queue/adapters/queue_store.cc).
constexpr Statement kCorePools{"cli_core_pools", "SELECT pool, row FROM queue.pools"};
constexpr Statement kCoreQueues{"cli_core_queues", "SELECT row FROM queue.queues WHERE pool = $1"};
constexpr Statement kCoreJobs{
    "cli_core_jobs", "SELECT row FROM queue.jobs WHERE pool = $1 AND NOT " FLUXQUEUE_ENDED};
constexpr Statement kCoreCycles{
    "cli_core_cycles", "SELECT requested FROM queue.cycles WHERE pool = $1 AND NOT answered"};

#undef FLUXQUEUE_JOB_COLUMNS
#undef FLUXQUEUE_ENDED

std::string Bytes(const pqxx::field& field) {
  return pqxx::binarystring(field).str();
}
std::string Text(const pqxx::field& field) {
  return field.as<std::string>();
}
int64_t Number(const pqxx::field& field) {
  return field.as<int64_t>();
}

using QueueMap = std::map<std::pair<std::string, std::string>, QueueInfo>;

HeldByQueue ReadHeld(pqxx::transaction_base& tx) {
  HeldByQueue held;
  for (const pqxx::row& row : Exec(tx, kHeld)) {
    queue::v1::JobRow stored;
    stored.ParseFromString(Bytes(row[2]));
    const scheduling::Resources all = queue_core::ToResources(stored.amounts());
    const queue_core::Job job = queue_core::FromRow(stored);
    const uint32_t slots = queue_core::SlotsOf(job);
    held[{Text(row[0]), Text(row[1])}].Add(slots == job.slots ? all : all.Part(slots, job.slots));
  }
  return held;
}

// With that of the queues below.
HeldByQueue ReadHeldBelow(pqxx::transaction_base& tx, const QueueMap& queues) {
  HeldByQueue sums;
  for (const auto& [key, held] : ReadHeld(tx)) {
    std::set<std::string> seen;
    for (auto at = queues.find(key); at != queues.end() && seen.insert(at->first.second).second;
         at = queues.find({key.first, at->second.parent})) {
      sums[at->first].Add(held);
    }
  }
  return sums;
}

std::vector<BudgetUse> BudgetsOf(const events::v1::QueueConfigured& config) {
  std::vector<BudgetUse> uses;
  for (const scheduling::Budget& budget : queue_core::SpecOf(config).budgets) {
    uses.push_back({.budget = budget});
  }
  return uses;
}

// What was used of the budgets until now.
void AddUse(pqxx::transaction_base& tx, QueueMap* queues) {
  const bool any = std::any_of(
      queues->begin(), queues->end(), [](const auto& one) { return !one.second.budgets.empty(); });
  if (!any) return;
  const HeldByQueue held = ReadHeldBelow(tx, *queues);
  for (const pqxx::row& row : Exec(tx, kPasts)) {
    queue::v1::UsageRow stored;
    stored.ParseFromString(Bytes(row[1]));
    const auto queue = queues->find({Text(row[0]), stored.past().queue()});
    if (queue == queues->end() || queue->second.budgets.empty()) continue;
    const scheduling::Past past = queue_core::FromRow(stored.past()).past;
    std::vector<scheduling::Budget> budgets;
    for (const BudgetUse& use : queue->second.budgets) budgets.push_back(use.budget);
    const auto holds = held.find(queue->first);
    const auto spent =
        scheduling::SpentOf(budgets,
                            past.spent,
                            holds == held.end() ? scheduling::Resources() : holds->second,
                            past.at_ms,
                            Number(row[2]));
    for (size_t i = 0; i < spent.size(); ++i) {
      queue->second.budgets[i].used_hours = scheduling::HoursOf(spent[i]);
    }
  }
}

std::string TextOf(const events::v1::Limits& limits) {
  std::string text;
  const auto add = [&text](const std::string& limit) {
    text += (text.empty() ? "" : ", ") + limit;
  };
  if (limits.has_running_jobs()) add(fmt::format("{} running", limits.running_jobs()));
  if (limits.has_queued_jobs()) add(fmt::format("{} in line", limits.queued_jobs()));
  for (const events::v1::Amount& amount : limits.amounts()) {
    scheduling::Resources one;
    one.Add(amount.resource(), amount.amount());
    add(fmt::format("{} {}",
                    amount.resource(),
                    scheduling::FormatAmount(amount.resource(), one.Of(amount.resource()))));
  }
  if (limits.has_gpu_seconds()) {
    add(fmt::format("{:.4g} gpu-hours", static_cast<double>(limits.gpu_seconds()) / 3600));
  }
  return text;
}

std::string TextOf(const events::v1::QueueConfigured& config) {
  std::string text;
  const auto add = [&text](const char* of, const events::v1::Limits& limits) {
    const std::string list = TextOf(limits);
    if (!list.empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", of, list);
  };
  add("queue", config.limits());
  add("namespace", config.namespace_limits());
  add("user", config.user_limits());
  return text;
}

Job ReadJob(const pqxx::row& row) {
  Job job{.id = Text(row[0]),
          .pool = Text(row[1]),
          .queue = Text(row[2]),
          .space = Text(row[3]),
          .name = Text(row[4]),
          .kind = Text(row[5]),
          .user = Text(row[17]),
          .state = Text(row[6]),
          .version = Number(row[7]),
          .attempt = Number(row[8]),
          .reason = Text(row[9]),
          .message = Text(row[10]),
          .slots = Number(row[11]),
          .most_slots = Number(row[16]),
          .priority = Number(row[12]),
          .created_ms = Number(row[13]),
          .start_ms = Number(row[14]),
          .updated_ms = Number(row[15])};
  const auto state = model::ParseJobState(job.state);
  job.ended = state.has_value() && model::IsTerminal(*state);
  return job;
}

std::vector<std::string> Blobs(pqxx::transaction_base& tx,
                               const Statement& statement,
                               const std::string& pool) {
  std::vector<std::string> blobs;
  for (const pqxx::row& row : Exec(tx, statement, pool)) blobs.push_back(Bytes(row[0]));
  return blobs;
}

void AddNodes(pqxx::transaction_base& tx, std::vector<Job>* jobs) {
  std::map<std::string, Job*> by_id;
  postgres::TextArray ids;
  for (Job& job : *jobs) {
    by_id[job.id] = &job;
    ids.Add(job.id);
  }
  for (const pqxx::row& row : Exec(tx, kPlacements, ids.text())) {
    Job& job = *by_id.at(Text(row[0]));
    events::v1::Placement placement;
    if (Number(row[1]) != job.attempt || !placement.ParseFromString(Bytes(row[2]))) continue;
    for (const auto& slot : placement.slots()) {
      if (std::find(job.nodes.begin(), job.nodes.end(), slot.node()) == job.nodes.end()) {
        job.nodes.push_back(slot.node());
      }
    }
  }
}

// The rows of the cores have to be of one moment.
void SeeOneMoment(pqxx::transaction_base& tx) {
  tx.exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
}

// Shows each pool's core, restored, to `look`.
template <typename Look>
absl::Status ForEachCore(pqxx::transaction_base& tx, const Look& look) {
  for (const pqxx::row& row : Exec(tx, kCorePools)) {
    const std::string pool = Text(row[0]);
    queue_core::QueueCore core(pool);
    RETURN_IF_ERROR(Annotate(core.Restore({.pool = Bytes(row[1]),
                                           .queues = Blobs(tx, kCoreQueues, pool),
                                           .jobs = Blobs(tx, kCoreJobs, pool),
                                           .usage = {},
                                           .endings = {},
                                           .cycles_unanswered = Blobs(tx, kCoreCycles, pool)}),
                             "rows of pool " + pool));
    look(core);
  }
  return absl::OkStatus();
}

absl::Status AddPositions(pqxx::transaction_base& tx, std::vector<Job>* jobs) {
  const bool any = std::any_of(
      jobs->begin(), jobs->end(), [](const Job& job) { return job.state == "Pending"; });
  if (!any) return absl::OkStatus();
  return ForEachCore(tx, [jobs](const queue_core::QueueCore& core) {
    for (Job& job : *jobs) {
      if (job.pool == core.pool() && job.state == "Pending") job.position = core.Position(job.id);
    }
  });
}

absl::Status ReadFront(pqxx::transaction_base& tx, size_t most, std::vector<Job>* jobs) {
  SeeOneMoment(tx);
  std::map<std::string, size_t> positions;
  postgres::TextArray ids;
  RETURN_IF_ERROR(ForEachCore(tx, [&](const queue_core::QueueCore& core) {
    for (const std::string& id : core.Front(most)) {
      positions[id] = core.Position(id);
      ids.Add(id);
    }
  }));
  for (const pqxx::row& row : Exec(tx, kOfIds, ids.text())) {
    jobs->push_back(ReadJob(row));
    jobs->back().position = positions.at(jobs->back().id);
  }
  AddNodes(tx, jobs);
  return absl::OkStatus();
}

}  // namespace

std::string Job::SlotsText() const {
  return most_slots == 0 ? fmt::format("{}", slots) : fmt::format("{}/{}", slots, most_slots);
}

JobStore::JobStore(const postgres::Options& options, size_t connections)
    : connections_(options, connections) {}

absl::StatusOr<std::vector<Job>> JobStore::Jobs(const JobFilter& filter, int64_t* total) {
  std::vector<Job> jobs;
  *total = 0;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : Exec(tx,
                                     kJobs,
                                     filter.queue,
                                     filter.state,
                                     filter.space,
                                     filter.ended,
                                     filter.limit,
                                     filter.user,
                                     filter.since_ms,
                                     filter.until_ms)) {
      jobs.push_back(ReadJob(row));
      *total = Number(row[18]);
    }
    return absl::OkStatus();
  }));
  std::reverse(jobs.begin(), jobs.end());
  return jobs;
}

absl::StatusOr<std::vector<Job>> JobStore::Front(size_t most) {
  std::vector<Job> jobs;
  RETURN_IF_ERROR(connections_.Transact(
      [&](pqxx::transaction_base& tx) { return ReadFront(tx, most, &jobs); }));
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    return std::make_tuple(a.position == 0, a.queue, a.position, -a.created_ms) <
           std::make_tuple(b.position == 0, b.queue, b.position, -b.created_ms);
  });
  return jobs;
}

absl::StatusOr<std::vector<Job>> JobStore::Find(const std::string& wanted) {
  std::vector<Job> jobs;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : Exec(tx, kFind, wanted)) jobs.push_back(ReadJob(row));
    return absl::OkStatus();
  }));
  return jobs;
}

absl::StatusOr<std::vector<std::string>> JobStore::Names() {
  std::vector<std::string> names;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : Exec(tx, kNames, kNamesForNearMatches))
      names.push_back(Text(row[0]));
    return absl::OkStatus();
  }));
  return names;
}

absl::Status JobStore::AddNodes(std::vector<Job>* jobs) {
  return connections_.Query([&](pqxx::transaction_base& tx) {
    for (Job& job : *jobs) job.nodes.clear();
    job_store::AddNodes(tx, jobs);
    return absl::OkStatus();
  });
}

absl::Status JobStore::AddPlaces(std::vector<Job>* jobs) {
  return connections_.Transact([&](pqxx::transaction_base& tx) {
    SeeOneMoment(tx);
    job_store::AddNodes(tx, jobs);
    return AddPositions(tx, jobs);
  });
}

absl::StatusOr<std::vector<JobEvent>> JobStore::Events(const std::string& job_id) {
  std::vector<JobEvent> events;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : Exec(tx, kEvents, job_id)) {
      events.push_back({Number(row[0]),
                        Number(row[1]),
                        Text(row[2]),
                        Number(row[3]),
                        Text(row[4]),
                        Text(row[5])});
    }
    return absl::OkStatus();
  }));
  return events;
}

absl::StatusOr<std::vector<Promise>> JobStore::Promises(const std::string& job_id) {
  std::vector<Promise> promises;
  RETURN_IF_ERROR(connections_.Query([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : Exec(tx, kPromises, job_id)) {
      promises.push_back({.told_ms = Number(row[0]),
                          .start_ms = Number(row[1]),
                          .firm = row[2].as<bool>(),
                          .kept = row[3].as<bool>(),
                          .cause = Text(row[4]),
                          .by = Text(row[5])});
    }
    return absl::OkStatus();
  }));
  return promises;
}

absl::StatusOr<std::vector<JobSlot>> JobStore::Slots(const Job& job) {
  std::map<std::pair<int64_t, int64_t>, JobSlot> slots;
  RETURN_IF_ERROR(connections_.Transact([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : Exec(tx, kParts, job.id, job.attempt)) {
      events::v1::Placement placement;
      if (!placement.ParseFromString(Bytes(row[1]))) continue;
      for (const auto& slot : placement.slots()) {
        slots[{Number(row[0]), slot.slot()}] = {.part = Number(row[0]),
                                                .slot = slot.slot(),
                                                .node = slot.node(),
                                                .released = row[2].as<bool>() || slot.released()};
      }
    }
    for (const pqxx::row& row : Exec(tx, kPods, job.id, job.attempt)) {
      const auto slot = slots.find({Number(row[0]), Number(row[1])});
      if (slot == slots.end()) continue;
      slot->second.pod = Text(row[2]);
      slot->second.pod_state = Text(row[3]);
    }
    return absl::OkStatus();
  }));
  std::vector<JobSlot> result;
  for (auto& [key, slot] : slots) result.push_back(std::move(slot));
  return result;
}

absl::StatusOr<HeldByQueue> JobStore::Held() {
  HeldByQueue held;
  RETURN_IF_ERROR(connections_.Transact([&](pqxx::transaction_base& tx) {
    held = ReadHeld(tx);
    return absl::OkStatus();
  }));
  return held;
}

absl::StatusOr<std::vector<QueueInfo>> JobStore::Queues(bool ended) {
  QueueMap queues;
  RETURN_IF_ERROR(connections_.Transact([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : Exec(tx, kQueues)) {
      queue::v1::QueueRow stored;
      stored.ParseFromString(Bytes(row[2]));
      const events::v1::QueueConfigured& config = stored.config();
      queues[{Text(row[0]), Text(row[1])}] = {
          .pool = Text(row[0]),
          .queue = Text(row[1]),
          .strategy = config.strategy(),
          .priority = config.priority(),
          .weight = config.weight(),
          .depth = config.queue_depth(),
          .default_duration_ms = config.default_duration_ms(),
          .max_duration_ms = config.max_duration_ms(),
          .parent = config.parent(),
          .order = config.order().empty() ? "priority" : config.order(),
          .limits = TextOf(config),
          .together = config.limits(),
          .of_namespace = config.namespace_limits(),
          .of_user = config.user_limits(),
          .budgets = BudgetsOf(config),
          .exists = true,
          .jobs = {}};
    }
    AddUse(tx, &queues);
    for (const pqxx::row& row : Exec(tx, ended ? kCounts : kLiveCounts)) {
      QueueInfo& queue = queues[{Text(row[0]), Text(row[1])}];
      queue.pool = Text(row[0]);
      queue.queue = Text(row[1]);
      queue.jobs[Text(row[2])] = Number(row[3]);
    }
    return absl::OkStatus();
  }));
  std::vector<QueueInfo> result;
  for (auto& [key, queue] : queues) result.push_back(std::move(queue));
  return result;
}

}  // namespace fluxqueue::job_store
