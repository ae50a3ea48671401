#include "services/queue/adapters/flux_job_source.h"

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/base/status_macros.h"
#include "libs/model/job_state.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::queue {
namespace {

constexpr postgres::Statement kSpecs{
    "queue_flux_job_specs",
    "SELECT job_id, jobspec FROM matcher.specs WHERE part = 0 AND job_id = ANY($1::text[])"};
constexpr postgres::Statement kPlacements{
    "queue_flux_job_placements",
    "SELECT a.job_id, a.placement FROM unnest($1::text[], $2::bigint[]) AS w(job_id, attempt) "
    "CROSS JOIN LATERAL ("
    "  SELECT * FROM matcher.allocations x "
    "  WHERE x.job_id = w.job_id AND x.attempt = w.attempt AND x.part = 0 OFFSET 0) a"};
constexpr postgres::Statement kTransitions{
    "queue_flux_job_transitions",
    "SELECT e.job_id, e.state, e.reason, e.time_ms, e.attempt "
    "FROM unnest($1::text[]) AS w(job_id) CROSS JOIN LATERAL ("
    "  SELECT * FROM queue.job_events x WHERE x.job_id = w.job_id "
    "  ORDER BY version DESC LIMIT 100) AS e ORDER BY e.job_id, e.version"};
constexpr postgres::Statement kLive{"queue_flux_job_live", "SELECT row FROM queue.jobs WHERE live"};
constexpr postgres::Statement kFactsOf{"queue_flux_job_facts",
                                       "SELECT row FROM queue.jobs WHERE job_id = ANY($1::text[])"};

absl::StatusOr<std::vector<events::v1::JobFact>> ToFacts(const pqxx::result& rows) {
  std::vector<events::v1::JobFact> facts;
  facts.reserve(rows.size());
  for (const pqxx::row& row : rows) {
    fluxqueue::queue::v1::JobRow job;
    if (!job.ParseFromString(pqxx::binarystring(row[0]).str())) {
      return Internal("a row of queue.jobs does not decode");
    }
    facts.push_back(std::move(*job.mutable_fact()));
  }
  return facts;
}

}  // namespace

FluxJobSource::FluxJobSource(postgres::Options options)
    : pool_(
          [&] {
            options.plans = postgres::Plans::kKept;
            return options;
          }(),
          2) {}

absl::StatusOr<std::map<std::string, FluxJobDetails>> FluxJobSource::Details(
    const std::vector<events::v1::JobFact>& facts) {
  postgres::TextArray all;
  postgres::TextArray holding;
  postgres::BigintArray attempts;
  for (const events::v1::JobFact& fact : facts) {
    all.Add(fact.job_id());
    // What an ended job held is kept for a day: people want to see where it ran.
    const bool ended = model::IsTerminal(static_cast<model::JobState>(fact.state()));
    if (fact.placement_hash() == 0 && !ended) continue;
    holding.Add(fact.job_id());
    attempts.Add(fact.attempt());
  }
  std::map<std::string, FluxJobDetails> details;
  RETURN_IF_ERROR(pool_.Query([&](pqxx::transaction_base& tx) {
    details.clear();
    for (const pqxx::row& row : postgres::Exec(tx, kSpecs, all.text())) {
      details[row[0].as<std::string>()].jobspec = row[1].as<std::string>();
    }
    for (const pqxx::row& row : postgres::Exec(tx, kTransitions, all.text())) {
      details[row[0].as<std::string>()].transitions.push_back({row[1].as<std::string>(),
                                                               row[2].as<std::string>(),
                                                               row[3].as<int64_t>(),
                                                               row[4].as<uint32_t>()});
    }
    if (holding.empty()) return absl::OkStatus();
    for (const pqxx::row& row : postgres::Exec(tx, kPlacements, holding.text(), attempts.text())) {
      events::v1::Placement placement;
      if (!placement.ParseFromString(pqxx::binarystring(row[1]).str())) {
        return Internal("matcher.allocations.placement of job {} does not decode",
                        row[0].as<std::string>());
      }
      FluxJobDetails& job = details[row[0].as<std::string>()];
      for (const events::v1::Placement::Slot& slot : placement.slots()) {
        if (!slot.released()) job.slots.emplace_back(slot.slot(), slot.node());
      }
    }
    return absl::OkStatus();
  }));
  return details;
}

absl::StatusOr<std::vector<events::v1::JobFact>> ReadLiveFacts(pqxx::transaction_base& tx) {
  return ToFacts(postgres::Exec(tx, kLive));
}

absl::StatusOr<std::vector<events::v1::JobFact>> ReadFactsOf(
    pqxx::transaction_base& tx, const std::vector<std::string>& job_ids) {
  postgres::TextArray ids;
  for (const std::string& job_id : job_ids) ids.Add(job_id);
  return ToFacts(postgres::Exec(tx, kFactsOf, ids.text()));
}

absl::StatusOr<std::vector<events::v1::JobFact>> FluxJobSource::LiveFacts() {
  std::vector<events::v1::JobFact> facts;
  RETURN_IF_ERROR(pool_.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    ASSIGN_OR_RETURN(facts, ReadLiveFacts(tx));
    return absl::OkStatus();
  }));
  return facts;
}

absl::StatusOr<std::vector<events::v1::JobFact>> FluxJobSource::FactsOf(
    const std::vector<std::string>& job_ids) {
  std::vector<events::v1::JobFact> facts;
  RETURN_IF_ERROR(pool_.Query([&](pqxx::transaction_base& tx) -> absl::Status {
    ASSIGN_OR_RETURN(facts, ReadFactsOf(tx, job_ids));
    return absl::OkStatus();
  }));
  return facts;
}

}  // namespace fluxqueue::queue
