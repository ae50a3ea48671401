// What the API server asks the webhook, and what that answers. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libs/kubernetes/group_table.h"
#include "libs/kubernetes/kinds.h"
#include "libs/tracing/trace_context.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::admission {

// What the API server asks.
struct Review {
  std::string uid;
  std::string operation;            // "CREATE", "UPDATE"
  std::string group;                // of the resource; empty: the core group
  std::string resource;             // plural
  std::string subresource;          // "scale"; empty: the object itself
  std::string space;                // namespace
  std::string name;                 // empty with generateName
  std::string user;                 // who asks; empty: not said
  std::vector<std::string> groups;  // of who asks
  std::string user_pod;             // uid of the pod whose token he has; empty: of none
  std::string object;               // JSON text; empty when the review has none
  // What is scaled, as Absent::Kind::kScaled asks for it: JSON text; empty: there is none.
  std::optional<std::string> scaled;
  // Of how many pods the group is, as Absent::Kind::kGroup asks for it; 0: it is none. An error:
  // why it is not known.
  std::optional<absl::StatusOr<uint32_t>> group_size;
  // What says of a pod's places, as Absent::Kind::kPlaces asks for it: JSON text; empty: there is
  // none.
  std::optional<std::string> places;
  // Ours in the trace of the API server's request; unset: that has none.
  std::optional<tracing::Context> span;
};

// Something that the decision took for absent because the facts do not have it. Facts come by
// watches, a moment late: look it up, and decide again if it is there. `name` is one that an object
// may have. What is scaled, what has a group's size, and what says of places, no watch tells of: it
// is looked up each time, in the review's namespace.
struct Absent {
  enum class Kind { kNamespace, kQueue, kPriorityClass, kRuntimeClass, kScaled, kGroup, kPlaces };
  Kind kind = Kind::kNamespace;
  std::string name;
  const kubernetes::Kind* scaled = nullptr;  // kScaled: of the table
  // kGroup: as above. kPlaces: the same; null: the pod that has them.
  const kubernetes::GroupObjects* group = nullptr;

  friend bool operator==(const Absent&, const Absent&) = default;
};

struct Verdict {
  enum class Kind { kLeave, kHold, kRefuse };
  Kind kind = Kind::kLeave;
  std::string patch;                  // kHold: JSON Patch; empty when nothing needs to be changed
  std::string message;                // kRefuse: why, and what to do
  std::vector<std::string> warnings;  // kubectl shows them
  std::optional<Absent> absent;
};

// `message`: with what users wrote; control characters are taken out, and it is cut.
Verdict Refuse(const std::string& message);
Verdict Refuse(const absl::Status& status);

}  // namespace fluxqueue::admission
