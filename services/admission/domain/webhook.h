// The webhook's decision: is the object ours, and if so, how is it held? Pure, thread-safe.
//
// Decide() sees an object before it exists: another webhook, validation or a quota may still reject
// it, and the same request may come twice or as a dry run. So it says nothing to anybody; what
// exists and carries our hold is found by the tracker (tracker.h).
//
//   Pod                  label fluxqueue.io/held; schedulerName or gate; toleration. Whatever owns
//                        it (a ReplicaSet, a StatefulSet): it is a job of its own
//   Job                  the same on its pod template, the label on the Job too; `suspend` with our
//                        annotation when ownership.h says so and the user did not suspend it
//   a pod that a pod     the same; where that has a place for it (place_rules.h), it is no job
//   makes
//   a Job's pod          left alone where the Job's controller makes it: it comes from a template
//                        that was held already. Refused from anybody else
//   a DaemonSet's pod,   left alone where its controller, or the kubelet, makes it: it belongs to
//   a mirror pod         its node
//   a Deployment,        judged as what it would make, and its template is stamped; nothing is
//   held. others of the table  One that a controller of Kubernetes makes has its stamp already, and
//   is of kinds             left alone its `scale`, an      refused where more pods are asked for
//   in another's name (scale_rules.h) autoscaler of it
//
// Who makes a pod is what the API server says of the request, never what the pod says of its owner.
//
// What is held is marked with who made it (annotation fluxqueue.io/user), whatever the object says
// of it: limits and shares are counted by it. A controller makes objects for somebody else, of whom
// the API server says nothing then. What comes of a template of the table of kinds
// (libs/kubernetes/kinds.h) has the stamp of who made that, which a policy keeps
// (k8s/policy.yaml, fluxqueue-stamps). All else that controllers make, and what has no stamp,
// counts as one user for each namespace, "namespace:team": so nobody gets more of a fair share, or
// past a limit, by making owners.
//
// Where the API server's request is traced, what is held names that trace, too (annotation
// fluxqueue.io/traceparent): the object has no uid yet that would tell the trace of its job.
//
// What else of our records (libs/kubernetes/labels.h, RecordedKeys) an object or its templates have
// from its maker counts for nothing. It is taken out, and the maker is warned.
//
// A patch changes only what is not there yet: Decide() of what the patch has made gives no patch.
// What could never be scheduled as asked is refused here, in words for the person at the keyboard.
#pragma once

#include <cstddef>
#include <cstdint>

#include "services/admission/domain/cluster_facts.h"
#include "services/admission/domain/review.h"

namespace fluxqueue::admission {

struct WebhookOptions {
  // A Job of more pods than this is held by suspend.
  int64_t hold_pods = 16;
  // A jobspec travels in one message of the log.
  size_t max_jobspec_bytes = 256 << 10;
  // Must outlive what is decided by it.
  const kubernetes::GroupTable* groups = &kubernetes::GroupTable::Known();
};

Verdict Decide(const Review& review, const ClusterFacts& facts, const WebhookOptions& options);

}  // namespace fluxqueue::admission
