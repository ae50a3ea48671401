#include "services/binder/adapters/provisioner.h"

#include <fmt/format.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/resource.h"

namespace fluxqueue::binder {

using events::v1::JobFact;

void Provisioner::Lack(std::vector<JobFact> jobs) {
  if (!done_) lacking_.Post("lacking", std::move(jobs));
}

absl::Status Provisioner::Run(const std::stop_token& stop) {
  while (const auto lacking = lacking_.TakeOne(stop)) {
    const absl::Status status = Compare(*lacking);
    const bool none = classes_.empty() && (status.ok() || absl::IsNotFound(status));
    if (none) done_ = true;
    if (none || status.ok()) continue;
    LogWarning("ProvisioningRequests are not as they should be, and are looked at again",
               {{"error", Message(status)}});
  }
  return absl::OkStatus();
}

absl::Status Provisioner::Compare(const std::vector<JobFact>& lacking) {
  std::vector<Provision> there;
  RETURN_IF_ERROR(cluster_
                      .List(kubernetes::kProvisioningRequests,
                            {.labels = fmt::format("{}={}", kManagedByLabel, kManagedBy)},
                            [&there](std::string_view text) {
                              if (auto request = ParseProvision(text); request.ok()) {
                                there.push_back(*std::move(request));
                              }
                              return absl::OkStatus();
                            })
                      .status());
  const Millis now = std::chrono::floor<Millis>(clock_.Now().time_since_epoch());
  const ProvisionPlan plan = PlanProvisions(classes_, lacking, there, now, &unwanted_);
  absl::Status first;
  for (const Provision& request : plan.remove) first.Update(Remove(request));
  for (const JobFact* fact : plan.ask) first.Update(Ask(*fact));
  return first;
}

absl::Status Provisioner::Ask(const JobFact& fact) {
  const events::v1::Workload& job = fact.workload();
  const absl::StatusOr<std::string> text =
      cluster_.Get(kubernetes::kJobs, job.namespace_(), job.name());
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(const std::string pods, ProvisionTemplate(fact, *text));
  const absl::Status made =
      cluster_.Create(kubernetes::kPodTemplates, job.namespace_(), pods).status();
  if (!absl::IsAlreadyExists(made)) RETURN_IF_ERROR(made);
  const absl::Status asked = cluster_
                                 .Create(kubernetes::kProvisioningRequests,
                                         job.namespace_(),
                                         ProvisionRequest(fact, classes_.at(fact.pool())))
                                 .status();
  if (absl::IsAlreadyExists(asked)) return absl::OkStatus();
  if (IsPoison(asked)) {
    // Without its request nothing would take it away.
    cluster_.Delete(kubernetes::kPodTemplates, job.namespace_(), ProvisionName(fact)).IgnoreError();
  }
  RETURN_IF_ERROR(asked);
  LogInfo("nodes asked for",
          {{"namespace", job.namespace_()}, {"job", job.name()}, {"name", ProvisionName(fact)}});
  return absl::OkStatus();
}

absl::Status Provisioner::Remove(const Provision& request) {
  const absl::Status removed = cluster_.Delete(kubernetes::kProvisioningRequests,
                                               request.space,
                                               request.name,
                                               {.preconditions = {.uid = request.uid}});
  if (absl::IsAborted(removed)) return absl::OkStatus();
  if (!absl::IsNotFound(removed)) RETURN_IF_ERROR(removed);
  const absl::Status pods = cluster_.Delete(kubernetes::kPodTemplates, request.space, request.name);
  return absl::IsNotFound(pods) ? absl::OkStatus() : pods;
}

}  // namespace fluxqueue::binder
