// Where a pod may run, as an RFC 31 constraint. Pure, thread-safe.
//
//   nodeSelector                        {"properties":["disk=ssd","zone=a"]}
//   required node affinity              or of the terms, and of their expressions:
//     In [a, b]                         {"or":[{"properties":["k=a"]},{"properties":["k=b"]}]}
//     NotIn [a, b]                      {"not":[{"or":[…]}]}
//                                       (a node without the label passes, as in Kubernetes)
//     Exists, DoesNotExist              {"properties":["k"]}, {"not":[{"properties":["k"]}]}
//     Gt [5], Lt [5]                    {"gt":["k=5"]}, {"lt":["k=5"]}
//     matchFields metadata.name         {"hostlist":["n1"]}
//   tolerations                         {"tolerations":["dedicated=batch:NoSchedule","gpu","*"]}
//
// A term that no node can meet (an empty one, a Gt or Lt of what is no number) is left out, as
// kube-scheduler does.
//
// The whole is {"and":[…]}: first nodeSelector, then affinity, last always `tolerations`. That, and
// `gt` and `lt`, are extensions of ours (libs/graph/constraint.h). A node that has a NoSchedule or
// NoExecute taint that none of the tolerations tolerates is excluded. Forms: `key=value:Effect`,
// `key=value` (all effects), `key:Effect` and `key` (Exists),
// `*:Effect` and `*` (every key). Sorted, each once; those against PreferNoSchedule are left out.
//
// Preferred node affinity, and tolerations of PreferNoSchedule, are said beside it, as preferences:
//
//   {"terms":[{"weight":80,"constraint":{"properties":["zone=a"]}}],
//    "tolerations":["spot:PreferNoSchedule"]}
#pragma once

#include <cstddef>
#include <string>

#include "libs/kubernetes/views.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// A value of an expression is a few bytes in the pod, and stands with its key in the constraint: a
// pod of a megabyte could ask for a hundred. Node affinity that would be longer than this is
// refused before it is written out.
inline constexpr size_t kMaxAffinityBytes = size_t{1} << 20;
// As much as a jobspec may have of them (libs/graph/jobspec.h). The values of all expressions, of
// which one without any counts as one, each tried on each node.
inline constexpr size_t kMaxPreferencesBytes = size_t{16} * 1024;
inline constexpr size_t kMaxPreferredValues = 64;

// The constraint as JSON text. InvalidArgument as by CheckExpressible.
absl::StatusOr<std::string> MakeConstraint(const PodSpec& pod);

// The pod's preferences as JSON text; empty: it prefers nothing. As they keep no pod from running,
// what cannot be heeded is left out: terms that are none, and the lightest of those that have more
// than kMaxPreferredValues in all, or more than kMaxPreferencesBytes.
std::string MakePreferences(const PodSpec& pod);

// InvalidArgument names field, value and what to do instead, for what a graph of nodes cannot hold:
// node affinity whose terms no node can meet, node affinity that is too long, too many host ports.
// Pinned mode is no way out: the node is chosen before kube-scheduler looks.
absl::Status CheckExpressible(const PodSpec& pod);

}  // namespace fluxqueue::kubernetes
