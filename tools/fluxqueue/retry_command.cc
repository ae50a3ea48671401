// retry: what was rejected is handed in again. It is asked for by an annotation of the workload, as
// every user of the cluster can; admission acts on it.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/job_store/job_store.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/labels.h"
#include "libs/model/job_state.h"
#include "libs/model/workload.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/job_call.h"
#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

using job_store::Job;
using nlohmann::json;

constexpr Millis kLook{200};
constexpr Millis kPatience{15'000};

// Why it cannot be handed in again.
absl::Status Check(const Job& job) {
  const auto refused = [&job](const std::string& why) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition, "{} ({}): {}", job.FullName(), job.id, why);
  };
  if (model::IsClaim(job.kind)) {
    return refused(
        "it is a claim, and has no workload that waits: ask for it again, under another client id");
  }
  if (model::IsGroup(job.kind)) {
    return refused(
        fmt::format("it is a group of pods: give one of them another value of the annotation {}",
                    kubernetes::kRetryKey));
  }
  if (job.state == model::Name(model::JobState::kRejected)) return absl::OkStatus();
  return refused(fmt::format("it is {}: only what is Rejected can be handed in again{}",
                             job.state,
                             job.ended ? "; delete its workload, and make another" : ""));
}

absl::Status Ask(kubernetes::Client& client, const Job& job, Millis now) {
  json patch;
  patch["metadata"]["uid"] = job.id;  // not another one of its name
  patch["metadata"]["annotations"][std::string(kubernetes::kRetryKey)] = FormatTime(now);
  const auto& resource = job.kind == "Pod" ? kubernetes::kPods : kubernetes::kJobs;
  const absl::Status asked =
      client.Patch(resource, job.space, job.name, kubernetes::PatchType::kMerge, patch.dump())
          .status();
  return asked.ok() ? asked : Annotate(asked, fmt::format("{} ({})", job.FullName(), job.id));
}

// False: nothing has become of it yet.
absl::StatusOr<bool> Await(const Context& context, job_store::JobStore& store, const Job& job) {
  const Millis deadline = context.Now() + kPatience;
  while (context.Now() < deadline) {
    ASSIGN_OR_RETURN(const std::vector<Job> found, store.Find(job.id));
    if (!found.empty() && found.front().version > job.version) {
      const Job& now = found.front();
      fmt::print("{} ({}): {}, attempt {}: {}\n",
                 job.FullName(),
                 job.id,
                 now.state,
                 now.attempt,
                 now.message.empty() ? now.reason : now.message);
      return true;
    }
    std::this_thread::sleep_for(kLook);
  }
  fmt::print(
      "{} ({}): it is asked for, and still Rejected: the Events of the {} say whether it is "
      "refused\n",
      job.FullName(),
      job.id,
      job.kind);
  return false;
}

absl::StatusOr<int> Retry(const Context& context, const std::vector<std::string>& wanted) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  std::vector<Job> jobs;
  for (const std::string& name : wanted) {
    ASSIGN_OR_RETURN(Job job, FindJob(config, name));
    RETURN_IF_ERROR(Check(job));
    jobs.push_back(std::move(job));
  }
  ASSIGN_OR_RETURN(const auto client, ReachCluster(config));
  for (const Job& job : jobs) RETURN_IF_ERROR(Ask(*client, job, context.Now()));
  job_store::JobStore store(PostgresOptions(config.dsn));
  bool all = true;
  for (const Job& job : jobs) {
    ASSIGN_OR_RETURN(const bool followed, Await(context, store, job));
    all = all && followed;
  }
  return all ? 0 : 1;
}

}  // namespace

void RegisterRetry(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("retry", "Hand in again what was rejected");
  sub->group("Jobs");
  const auto jobs = std::make_shared<std::vector<std::string>>();
  sub->add_option("JOB", *jobs, "Its id, its name, or NAMESPACE/NAME; also several")
      ->required()
      ->type_name("JOB");
  sub->footer(
      "The job waits in line again, as its next attempt, with what its workload says now. When one "
      "of the jobs is not\nRejected none is handed in. It sets the annotation fluxqueue.io/retry, "
      "for which a user of the cluster needs nothing\nbut kubectl: any value that it did not have "
      "before does. A changed queue, priority, duration, topology, size or\ndependency does the "
      "same. Exit status 1: nothing has become of it after 15 s.\n\n"
      "Examples:\n"
      "  fluxqueue retry lab/train                   once there are nodes for it\n"
      "  kubectl annotate -n lab job/train --overwrite fluxqueue.io/retry=2   the same, by hand");
  sub->callback(
      [&context, jobs] { context.command = [&context, jobs] { return Retry(context, *jobs); }; });
}

}  // namespace fluxqueue::cli
