// Where Fluxqueue would run pods, by what its services do: cleanup's picture of the nodes, the
// webhook's and admission's reading of a pod, the matcher's engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/kubernetes/views.h"
#include "libs/matcher_core/node_book.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes_test {

// The jobspec of one pod. InvalidArgument: what the webhook refuses it with.
absl::StatusOr<graph::Jobspec> JobspecOf(const kubernetes::Pod& pod);

class OurNodes {
 public:
  // REQUIRES: nodes and pods are as the API server gives them.
  OurNodes(const nlohmann::json& nodes, const nlohmann::json& bound);

  size_t size() const { return alone_.size(); }
  // Gets nothing of ours, whatever a pod tolerates: it is cordoned, or not ready.
  bool IsClosed(size_t node) const { return !specs_[node].schedulable; }
  // The pod that is asked about next: nodes are closed to it by rules between pods.
  void SetPod(const graph::Jobspec& jobspec);
  // Whether the pod could run there, were there no other node to run on.
  bool CanRunOn(size_t node, const graph::Jobspec& jobspec);
  // The node that it is given among all of them; -1: none.
  int Place(const graph::Jobspec& jobspec);

 private:
  std::vector<graph::NodeSpec> specs_;
  // What the matcher keeps of the nodes.
  matcher_core::NodeBook book_;
  std::vector<graph::Closure> closures_;
  std::vector<std::unique_ptr<graph::Engine>> alone_;  // an engine for each node
  std::unique_ptr<graph::Engine> all_ = graph::MakeNativeEngine();
};

}  // namespace fluxqueue::kubernetes_test
