#include "services/queue/adapters/flux_job_source.h"

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::queue {
namespace {

constexpr postgres::Statement kJobs{
    "queue_flux_job_jobs",
    "SELECT j.row, s.jobspec, a.placement FROM unnest($1::text[]) AS w(job_id) "
    "CROSS JOIN LATERAL ("
    "  SELECT * FROM queue.jobs x WHERE x.job_id = w.job_id OFFSET 0) AS j "
    "LEFT JOIN LATERAL ("
    "  SELECT * FROM matcher.specs x WHERE x.job_id = w.job_id AND x.part = 0 OFFSET 0) AS s "
    "ON true "
    "LEFT JOIN LATERAL ("
    "  SELECT * FROM matcher.allocations x "
    "  WHERE x.job_id = w.job_id AND x.attempt = j.attempt AND x.part = 0 OFFSET 0) AS a ON true"};
constexpr postgres::Statement kTransitions{
    "queue_flux_job_transitions",
    "SELECT e.job_id, e.state, e.reason, e.time_ms, e.attempt "
    "FROM unnest($1::text[]) AS w(job_id) CROSS JOIN LATERAL ("
    "  SELECT * FROM queue.job_events x WHERE x.job_id = w.job_id "
    "  ORDER BY version DESC LIMIT 100) AS e ORDER BY e.job_id, e.version"};
constexpr postgres::Statement kLive{"queue_flux_job_live", "SELECT row FROM queue.jobs WHERE live"};
constexpr postgres::Statement kFactsOf{"queue_flux_job_facts",
                                       "SELECT row FROM queue.jobs WHERE job_id = ANY($1::text[])"};

absl::StatusOr<events::v1::JobFact> ToFact(const pqxx::field& row) {
  fluxqueue::queue::v1::JobRow job;
  if (!job.ParseFromString(pqxx::binarystring(row).str())) {
    return Internal("a row of queue.jobs does not decode");
  }
  return std::move(*job.mutable_fact());
}

postgres::OnRow EachFact(const OnFact& on_fact) {
  return [&on_fact](const pqxx::row& row) -> absl::Status {
    ASSIGN_OR_RETURN(const events::v1::JobFact fact, ToFact(row[0]));
    on_fact(fact);
    return absl::OkStatus();
  };
}

std::string TextOf(const std::vector<std::string>& job_ids) {
  postgres::TextArray ids;
  for (const std::string& job_id : job_ids) ids.Add(job_id);
  return ids.text();
}

// What an ended job held is kept for a day: people want to see where it ran.
bool ShowsSlots(const events::v1::JobFact& fact) {
  return fact.placement_hash() != 0 ||
         model::IsTerminal(static_cast<model::JobState>(fact.state()));
}

absl::Status AddSlots(const pqxx::field& column, FluxJobSource::Job* job) {
  events::v1::Placement placement;
  if (!placement.ParseFromString(pqxx::binarystring(column).str())) {
    return Internal("matcher.allocations.placement of job {} does not decode", job->fact.job_id());
  }
  for (const events::v1::Placement::Slot& slot : placement.slots()) {
    if (!slot.released()) job->details.slots.emplace_back(slot.slot(), slot.node());
  }
  return absl::OkStatus();
}

}  // namespace

FluxJobSource::FluxJobSource(postgres::Options options)
    : pool_(
          [&] {
            options.plans = postgres::Plans::kKept;
            return options;
          }(),
          2) {}

absl::StatusOr<std::map<std::string, FluxJobSource::Job>> ReadFluxJobs(
    pqxx::transaction_base& tx, const std::vector<std::string>& job_ids) {
  std::map<std::string, FluxJobSource::Job> jobs;
  const std::string ids = TextOf(job_ids);
  for (const pqxx::row& row : postgres::Exec(tx, kJobs, ids)) {
    ASSIGN_OR_RETURN(events::v1::JobFact fact, ToFact(row[0]));
    FluxJobSource::Job& job = jobs[fact.job_id()];
    job.fact = std::move(fact);
    if (!row[1].is_null()) job.details.jobspec = row[1].as<std::string>();
    if (ShowsSlots(job.fact) && !row[2].is_null()) RETURN_IF_ERROR(AddSlots(row[2], &job));
  }
  for (const pqxx::row& row : postgres::Exec(tx, kTransitions, ids)) {
    const auto job = jobs.find(row[0].as<std::string>());
    if (job == jobs.end()) continue;
    job->second.details.transitions.push_back({row[1].as<std::string>(),
                                               row[2].as<std::string>(),
                                               row[3].as<int64_t>(),
                                               row[4].as<uint32_t>()});
  }
  return jobs;
}

absl::StatusOr<std::map<std::string, FluxJobSource::Job>> FluxJobSource::Jobs(
    const std::vector<std::string>& job_ids) {
  std::map<std::string, Job> jobs;
  RETURN_IF_ERROR(pool_.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    ASSIGN_OR_RETURN(jobs, ReadFluxJobs(tx, job_ids));
    return absl::OkStatus();
  }));
  return jobs;
}

absl::Status ReadLiveFacts(pqxx::transaction_base& tx, const OnFact& on_fact) {
  return postgres::ExecEach(tx, kLive, EachFact(on_fact));
}

absl::Status ReadFactsOf(pqxx::transaction_base& tx,
                         const std::vector<std::string>& job_ids,
                         const OnFact& on_fact) {
  return postgres::ExecEach(tx, kFactsOf, EachFact(on_fact), TextOf(job_ids));
}

absl::Status FluxJobSource::LiveFacts(const OnFact& on_fact) {
  return pool_.Transact([&](pqxx::transaction_base& tx) { return ReadLiveFacts(tx, on_fact); });
}

absl::Status FluxJobSource::FactsOf(const std::vector<std::string>& job_ids,
                                    const OnFact& on_fact) {
  return pool_.Transact(
      [&](pqxx::transaction_base& tx) { return ReadFactsOf(tx, job_ids, on_fact); });
}

}  // namespace fluxqueue::queue
