// By which keys pods say that they are of one group, and of how many: the rows of
// deploy/helm/fluxqueue/files/groups.yaml, which says what each field means (compiled in), and
// those that an installation adds. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/places.h"
#include "libs/kubernetes/resource.h"
#include "libs/kubernetes/views.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// Each pod is named, by its uid, in every message about the job.
inline constexpr uint32_t kMaxGroupPods = 4'000;

struct GroupName {
  std::string name;  // a DNS label
  uint32_t size = 0;
  // Its pods did not ask to be a gang, the kind that they are of is one: where they are not all
  // there, or cannot be one job, each is a job of its own.
  bool or_each = false;
  // The same; and while some of its pods run, those that come are each a job of its own at once.
  bool at_first = false;

  friend bool operator==(const GroupName&, const GroupName&) = default;
};

// What says of how many pods a group is where its pods do not: objects of this kind.
class GroupObjects {
 public:
  // Of strings of this object.
  Resource resource() const { return {group, version, plural}; }
  // The pods that the object (JSON) asks for; 0: they are not made at once, and are no gang, or
  // (`or_each`) are too many for one. InvalidArgument: it asks for too many, or says something else
  // than a number.
  absl::StatusOr<uint32_t> SizeIn(std::string_view object) const;
  // Where it says what places its pod has, and no size. Unset: none.
  std::optional<Places> PlacesIn(std::string_view object) const;

  struct Pods {
    int64_t count = 1;
    std::string each;                             // JSON Pointer, as all below; empty: once
    std::vector<std::vector<std::string>> times;  // of each list the least
  };
  struct Value {
    std::string each;
    std::string at;
    std::string is;       // empty: any
    std::string over;     // a number, which that at `at` exceeds
    std::string differs;  // from which that at `at` differs
  };

  std::string group;
  std::string version;
  std::string plural;
  std::vector<Pods> pods;
  std::vector<Value> unless;
  bool or_each = false;
  bool has_places = false;  // of its one pod, for those that this makes
};

struct AskedGroup {
  GroupName group;                        // size 0: the object has it
  const GroupObjects* objects = nullptr;  // null: the keys say the size
  std::string object;                     // its name, in the pods' namespace
};

// What pods say, and who makes them.
struct PodKeys {
  const StringMap& labels;
  const StringMap& annotations;
  std::string_view pod_group = {};        // as PodSpec::pod_group
  const OwnerReference* owner = nullptr;  // whose controller makes them; null: others do
};

class GroupTable {
 public:
  // What is compiled in.
  static const GroupTable& Known();
  // `rows`, a YAML list, after these. InvalidArgument names the row, and what is allowed.
  static absl::StatusOr<GroupTable> With(std::string_view rows);

  // What such pods ask for. Unset: no group, or one of a single pod. InvalidArgument names the key,
  // its value and what is allowed. What it points to is the table's.
  absl::StatusOr<std::optional<AskedGroup>> Asked(const PodKeys& pods) const;

 private:
  struct Owners {
    std::string kind;
    bool at_first = false;  // where the pods do not say
  };
  struct Row {
    std::optional<Owners> owners;   // whose name is the group's
    bool by_pod_group = false;      // or it is the pods' pod_group
    std::vector<std::string> name;  // else
    std::map<std::string, std::string> conditions;
    std::string size;
    std::optional<GroupObjects> objects;
  };
  class Reader;

  std::vector<Row> rows_;
};

}  // namespace fluxqueue::kubernetes
