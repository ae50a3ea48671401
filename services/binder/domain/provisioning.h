// Nodes for Jobs: ProvisioningRequests, by which the cluster autoscaler is asked for the nodes of
// all pods of a Job at once, where the Job is held by its suspend and there are no pods that it
// could look at.
//
// Asked is for Jobs that lack nothing but nodes, of each queue the first (the queue's table
// lack_nodes), in pools that are configured to. A request is named by its Job's uid and the
// revision of what it asks for. What is to be there is compared with what is there: a request whose
// Job has not lacked nodes for kUnwantedFor, or asks for something else, is deleted, as autoscalers
// serve none that comes and goes; one that failed or has expired is deleted after kAskAgain, and so
// is made again. All go with their Job.
//
// A request names its pods by a PodTemplate of the same name, which is made first and deleted last.
//
// The API: https://github.com/kubernetes/autoscaler, cluster-autoscaler/apis/provisioningrequest,
// autoscaling.x-k8s.io/v1.
//
// Pure, thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"

#include "absl/status/statusor.h"

namespace fluxqueue::binder {

// By pool: the provisioning class that is asked.
using ProvisioningClasses = std::map<std::string, std::string>;

// Of "POOL=CLASS" each. InvalidArgument: one that is not, or a pool that is named twice.
absl::StatusOr<ProvisioningClasses> ParseProvisioningClasses(const std::vector<std::string>& words);

// What Fluxqueue has made has this label.
inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManagedBy = "fluxqueue";

// A request that is there.
struct Provision {
  std::string space;  // namespace
  std::string name;
  std::string uid;
  std::string provisioning_class = {};
  bool over = false;  // it failed, or what it had is given back: nothing comes of it any more
  int64_t created_ms = 0;
};

// InvalidArgument: it is none.
absl::StatusOr<Provision> ParseProvision(std::string_view json);

inline constexpr Millis kAskAgain{10 * 60'000};  // since it was made
inline constexpr Millis kUnwantedFor{30'000};

struct ProvisionPlan {
  std::vector<const events::v1::JobFact*> ask;  // of `lacking`
  std::vector<Provision> remove;
};

// `unwanted`: since when which requests, by uid, have not been wanted; what it was left as by the
// call before.
ProvisionPlan PlanProvisions(const ProvisioningClasses& classes,
                             const std::vector<events::v1::JobFact>& lacking,
                             const std::vector<Provision>& there,
                             Millis now,
                             std::map<std::string, Millis>* unwanted);

std::string ProvisionName(const events::v1::JobFact& fact);
// The PodTemplate of a Job: what its pods ask for and may run on, without what we hold them by.
// `job`: its JSON. InvalidArgument: that has no template.
absl::StatusOr<std::string> ProvisionTemplate(const events::v1::JobFact& fact,
                                              std::string_view job);
std::string ProvisionRequest(const events::v1::JobFact& fact,
                             const std::string& provisioning_class);

}  // namespace fluxqueue::binder
