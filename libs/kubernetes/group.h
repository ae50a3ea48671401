// Gangs of pods: pods of one namespace and one user that name the same group, of which all start or
// none. What a pod says by one of the keys of the table (group_table.h), the webhook records on it
// when it is made (kGroupAnnotation), and the policies keep it. Where the pods of a Job are of
// a group, it is recorded on the Job, and that is no job of its own. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kubernetes/group_table.h"
#include "libs/kubernetes/jobspec.h"
#include "libs/kubernetes/labels.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// The record, "NAME/SIZE", with a '+' behind it where it is of `or_each`, and a '^' where it is so
// at first; and what it says. Unset: there is none.
std::string FormatGroup(const GroupName& group);
std::optional<GroupName> ParseGroup(std::string_view record);

// What one pod of a group asks for.
struct GroupMember {
  std::string uid;
  std::string name;
  int index = -1;  // of a StatefulSet's
  int64_t created_ms = 0;
  std::string user;
  std::string admitted_to;
  bool controlled = false;
  int32_t priority = 0;
  UserKeys keys;
  std::optional<Millis> duration;  // its key, else its activeDeadlineSeconds
  PodDemand demand;

  friend bool operator==(const GroupMember&, const GroupMember&) = default;
};
// The members in the order of their slots: those that ask for the same beside each other, each set
// in the order of their indexes and names.
void SortBySlot(std::vector<const GroupMember*>* members);

// What they ask for together, in their order. REQUIRES: not empty. InvalidArgument: two of them
// differ in a key that a job has once, or in the nodes that they take.
absl::StatusOr<PodDemand> DemandOf(const std::vector<const GroupMember*>& members);

// Made of their uids: other members are another job.
std::string GroupJobId(const std::vector<const GroupMember*>& members);

}  // namespace fluxqueue::kubernetes
