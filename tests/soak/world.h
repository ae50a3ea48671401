// What there is in the cluster, as the soak sees it when it plans. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fluxqueue::soak {

// A Job, a pod, or what makes such.
struct Object {
  std::string kind{};   // "Job"
  std::string name{};   // in the namespace of the soak
  std::string owner{};  // its controller's kind, "" without one
  std::string node{};   // of a pod
  bool ended = false;
  bool suspended = false;
  bool suspended_by_soak = false;
};

struct Node {
  bool cordoned = false;
  bool tainted = false;  // by the soak
};

struct World {
  std::vector<Object> objects{};
  std::map<std::string, Node> nodes{};  // those that are there
};

// The kinds that have pods until somebody deletes them.
bool Serves(std::string_view kind);

// That have not ended, by how they load the cluster: what serves counts twice, what another object
// has made does not.
int LiveLoad(const World& world);
int Serving(const World& world);

// Marks of the soak: a label, and the key of its taints.
inline constexpr std::string_view kSuspendedLabel = "soaksuspended";
inline constexpr std::string_view kTaintKey = "soak";

// The columns that ParseLook reads, for `kubectl get -o custom-columns=`.
std::string LookColumns();
// A line for each object, without a header. What is going is left out.
World ParseLook(std::string_view text);

}  // namespace fluxqueue::soak
