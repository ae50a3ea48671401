#include "tests/kubernetes/our_answers.h"

#include <map>
#include <optional>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/jobspec.h"
#include "libs/kubernetes/constraints.h"
#include "libs/kubernetes/submission.h"
#include "libs/matcher_core/codec.h"
#include "services/cleanup/domain/observer.h"

namespace fluxqueue::kubernetes_test {
namespace {

using nlohmann::json;

// Neither library knows the other.
static_assert(kubernetes::kMaxPreferencesBytes <= graph::kMaxPreferencesBytes);

// What cleanup says of each node, by its name.
std::map<std::string, events::v1::Node> Picture(const json& nodes, const json& bound) {
  cleanup::Observer observer(Millis(60'000));
  for (const json& text : nodes) {
    const absl::StatusOr<kubernetes::Node> node = kubernetes::ParseNode(text.dump());
    CHECK(node.ok(), "{}", Message(node.status()));
    observer.ObserveNode(*node, Millis(0));
  }
  for (const json& text : bound) {
    const absl::StatusOr<kubernetes::Pod> pod = kubernetes::ParsePod(text.dump());
    CHECK(pod.ok(), "{}", Message(pod.status()));
    observer.ObservePod(*pod, std::nullopt);
  }
  observer.Synced();
  std::map<std::string, events::v1::Node> picture;
  for (const events::v1::Envelope& said : observer.Collect(Millis(0)).nodes) {
    const events::v1::Node& node = said.node_upserted().node();
    if (!node.name().empty()) picture[node.name()] = node;
  }
  return picture;
}

const graph::Placement* Match(graph::Engine* engine, const graph::Jobspec& jobspec) {
  const graph::AllocationKey key{.job_id = "pod"};
  return engine->Match({.operation = graph::Operation::kAllocate, .key = key, .jobspec = jobspec})
      .placement;
}

}  // namespace

absl::StatusOr<graph::Jobspec> JobspecOf(const kubernetes::Pod& pod) {
  ASSIGN_OR_RETURN(const events::v1::JobSubmitted submitted,
                   kubernetes::SubmissionOf(pod, /*revision=*/1));
  absl::StatusOr<graph::Jobspec> jobspec = graph::ParseJobspec(submitted.spec().jobspec());
  // Admission takes what the matcher cannot read: that is none of the webhook's refusals.
  if (!jobspec.ok()) return Internal("{}", Message(jobspec.status()));
  return jobspec;
}

OurNodes::OurNodes(const json& nodes, const json& bound) {
  const std::map<std::string, events::v1::Node> picture = Picture(nodes, bound);
  for (const json& node : nodes) {
    const auto& event = picture.at(node["metadata"]["name"]);
    specs_.push_back(matcher_core::ToNodeSpec(event, specs_.size()));
    alone_.push_back(graph::MakeNativeEngine());
    CHECK(alone_.back()->AddNode(specs_.back()).ok());
    CHECK(all_->AddNode(specs_.back()).ok());
  }
}

bool OurNodes::CanRunOn(size_t node, const graph::Jobspec& jobspec) {
  const bool can = Match(alone_[node].get(), jobspec) != nullptr;
  if (can) alone_[node]->Release({.job_id = "pod"});
  return can;
}

int OurNodes::Place(const graph::Jobspec& jobspec) {
  const graph::Placement* placement = Match(all_.get(), jobspec);
  if (placement == nullptr) return -1;
  const std::string name = placement->slots.front().node;
  all_->Release({.job_id = "pod"});
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace fluxqueue::kubernetes_test
