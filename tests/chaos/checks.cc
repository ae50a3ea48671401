#include "tests/chaos/checks.h"

#include <algorithm>
#include <array>

#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/testing/shell.h"
#include "tests/soak/commands.h"

namespace fluxqueue::chaos {
namespace {

using std::chrono::seconds;

constexpr seconds kPatience{30};
constexpr int kVersionsInvariant = 7;
constexpr std::array kServices = {
    "admission", "queue", "matcher", "binder", "cleanup", "visibility", "graph"};
constexpr size_t kMostShown = 5;

// Of queue.jobs as j.
std::string OneOf(const std::vector<Made>& jobs) {
  std::vector<std::string> names = {"''"};
  for (const Made& job : jobs) names.push_back("'" + job.name + "'");
  return fmt::format(
      "j.namespace = '{}' AND j.name IN ({})", soak::kNamespace, absl::StrJoin(names, ", "));
}

Complaints Some(Complaints complaints) {
  if (complaints.size() <= kMostShown) return complaints;
  const size_t more = complaints.size() - kMostShown;
  complaints.resize(kMostShown);
  complaints.push_back(fmt::format("and {} more like these", more));
  return complaints;
}

}  // namespace

bool Checks::IsAnyBound(const std::vector<Made>& jobs, const std::vector<Made>& but) const {
  std::set<std::string> others;
  for (const Made& job : but) others.insert(job.name);
  return std::ranges::any_of(jobs, [&](const Made& job) {
    return !others.contains(job.name) && sightings_->PodsOf(job.name) > 0;
  });
}

absl::StatusOr<int> Checks::EndedOf(const std::vector<Made>& jobs) {
  ASSIGN_OR_RETURN(const std::string ended,
                   system_->QueryOne("SELECT count(DISTINCT j.name) FROM queue.jobs j WHERE NOT "
                                     "j.live AND " +
                                     OneOf(jobs)));
  return std::stoi(ended);
}

std::set<std::string> Checks::Unknown(const std::vector<Made>& jobs) {
  std::set<std::string> unknown;
  for (const Made& job : jobs) unknown.insert(job.name);
  const auto rows = system_->Query("SELECT DISTINCT j.name FROM queue.jobs j WHERE " + OneOf(jobs));
  if (!rows.ok()) return {};
  for (const auto& row : *rows) unknown.erase(row[0]);
  return unknown;
}

std::string Checks::PodsOf(const std::string& job) {
  const auto pods = system_->Kubectl(
      {"get",
       "pods",
       "-n",
       std::string(soak::kNamespace),
       "-l",
       "job-name=" + job,
       "-o",
       "jsonpath={range .items[*]}, {.metadata.name} {.status.phase} {.spec.nodeName} "
       "{.metadata.deletionTimestamp}{end}"});
  return pods.ok() ? *pods : Message(pods.status());
}

std::string Checks::Unended(const std::vector<Made>& jobs) {
  const auto rows = system_->Query(
      "SELECT j.name, j.state, j.reason, j.message FROM queue.jobs j WHERE j.live AND " +
      OneOf(jobs) + " ORDER BY j.created_ms");
  if (!rows.ok()) return Message(rows.status());
  const auto ended = EndedOf(jobs);
  std::string text = fmt::format("{} of {} jobs have ended, {} are on their way",
                                 ended.ok() ? *ended : 0,
                                 jobs.size(),
                                 rows->size());
  for (size_t i = 0; i < std::min(rows->size(), kMostShown); ++i) {
    text += "; " + absl::StrJoin((*rows)[i], " ");
    text += PodsOf((*rows)[i][0]);
  }
  for (const std::string& name : Unknown(jobs)) {
    text += fmt::format("; the queue knows no {}", name);
  }
  return text;
}

absl::Status Checks::AwaitEnds(const std::vector<Made>& jobs, seconds deadline) {
  return system_->WaitFor(
      [&] {
        const auto ended = EndedOf(jobs);
        return ended.ok() && *ended == static_cast<int>(jobs.size());
      },
      deadline,
      [&] { return Unended(jobs); });
}

Complaints Checks::EndedOnce(const std::vector<Made>& jobs) {
  const auto rows = system_->Query(
      "SELECT j.name, j.state, count(e.version) FILTER (WHERE e.state IN ('Succeeded', 'Failed', "
      "'Cancelled', 'Rejected')), count(e.version), max(e.version) FROM queue.jobs j LEFT JOIN "
      "queue.job_events e USING (job_id) WHERE " +
      OneOf(jobs) +
      " GROUP BY j.job_id HAVING count(e.version) FILTER (WHERE e.state IN ('Succeeded', 'Failed', "
      "'Cancelled', 'Rejected')) <> 1 OR count(e.version) <> max(e.version) OR (j.kind = 'Job' AND "
      "j.state <> 'Succeeded')");
  if (!rows.ok()) return {Message(rows.status())};
  Complaints complaints;
  for (const auto& row : *rows) {
    complaints.push_back(fmt::format(
        "{} is {}: {} ends, {} versions, the last {}", row[0], row[1], row[2], row[3], row[4]));
  }
  return Some(std::move(complaints));
}

Complaints Checks::RanOnce(const Made& job) const {
  const auto bound = [&] { return sightings_->PodsOf(job.name); };
  // The watch may be a moment late.
  system_->WaitFor([&] { return bound() >= job.pods; }, seconds(5), [] { return ""; })
      .IgnoreError();
  if (bound() == job.pods) return {};
  return {
      fmt::format("{} has {} completions, and {} pods were bound", job.name, job.pods, bound())};
}

Complaints Checks::NothingKept(const std::vector<Made>& jobs, seconds late) {
  std::string kept;
  const auto of = [&](const std::string& table, const std::string& also) {
    return fmt::format(
        "SELECT '{0}', j.name FROM {0} t JOIN queue.jobs j USING (job_id) WHERE {1} AND {2}",
        table,
        also,
        OneOf(jobs));
  };
  const std::string sql = of("matcher.allocations", "NOT t.released") + " UNION ALL " +
                          of("matcher.specs", "true") + " UNION ALL " +
                          of("matcher.reservations", "true") + " UNION ALL " +
                          of("binder.jobs", "true") + " UNION ALL " + of("binder.slots", "true");
  const absl::Status none = system_->WaitFor(
      [&] {
        const auto rows = system_->Query(sql);
        kept = rows.ok() ? "" : Message(rows.status());
        if (rows.ok()) {
          for (const auto& row : *rows) kept += row[0] + " of " + row[1] + "; ";
        }
        return kept.empty();
      },
      late + kPatience,
      [&] { return "kept for jobs that have ended: " + kept.substr(0, 400); });
  return none.ok() ? Complaints{} : Complaints{Message(none)};
}

absl::StatusOr<std::set<std::string>> Checks::LackingPods() {
  ASSIGN_OR_RETURN(
      const std::string names,
      system_->Kubectl(
          {"get",
           "deployments",
           "-n",
           std::string(soak::kNamespace),
           "-o",
           "jsonpath={range .items[?(@.status.unavailableReplicas)]}{.metadata.name} {end}"}));
  return std::set<std::string>(absl::StrSplit(names, ' ', absl::SkipEmpty()));
}

// Others come meanwhile, which may lack some for a moment.
Complaints Checks::Serves() {
  auto lacking = LackingPods();
  if (!lacking.ok()) return {Message(lacking.status())};
  const absl::Status serve = system_->WaitFor(
      [&] {
        const auto now = LackingPods();
        if (!now.ok()) return false;
        std::erase_if(*lacking, [&](const std::string& name) { return !now->contains(name); });
        return lacking->empty();
      },
      kPatience,
      [&] { return "these lack pods: " + absl::StrJoin(*lacking, ", "); });
  return serve.ok() ? Complaints{} : Complaints{Message(serve)};
}

Complaints Checks::Verify(bool log_lost) {
  const auto verified = system_->Fluxqueue({"verify", "--no-replay", "-o", "json"});
  if (!verified.ok()) return {Message(verified.status())};
  const auto said = nlohmann::json::parse(verified->output, nullptr, false);
  if (!said.is_object()) return {"verify: " + verified->output};
  Complaints complaints;
  for (const auto& invariant : said["invariants"]) {
    for (const auto& finding : invariant["findings"]) {
      const auto text = finding.get<std::string>();
      const bool of_the_log = invariant["number"] == kVersionsInvariant &&
                              text.find("jobs topic: version") != std::string::npos;
      if (log_lost && of_the_log) continue;
      complaints.push_back(fmt::format("verify {}: {}", invariant["number"].get<int>(), text));
    }
  }
  return Some(std::move(complaints));
}

Complaints Checks::Replay() {
  const auto replayed = system_->Fluxqueue({"replay"});
  if (!replayed.ok()) return {Message(replayed.status())};
  fmt::print("replay: {}", replayed->output);
  if (replayed->exit_code == 0) return {};
  const auto lost = testing::Run(
      fmt::format("grep -hE 'messages (may be )?lost' {}/logs/*.log | head -n {} | cut -c 1-300",
                  testing::ShellQuote(system_->folder()),
                  kMostShown));
  return {"replay: " + replayed->output + lost.value_or("")};
}

Complaints Checks::Ready() {
  Complaints complaints;
  for (const char* service : kServices) {
    for (const int replica : {1, 2}) {
      std::string said;
      const absl::Status ready = system_->WaitFor(
          [&] {
            const auto answer = system_->Readiness(service, replica);
            said = answer.ok() ? *answer : Message(answer.status());
            return said == "ok" || said == "ok\n";
          },
          kPatience,
          [&] { return fmt::format("{}-{} is not ready: {}", service, replica, said); });
      if (!ready.ok()) complaints.push_back(Message(ready));
    }
  }
  return complaints;
}

}  // namespace fluxqueue::chaos
