#include "tests/kubernetes/our_answers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/jobspec.h"
#include "libs/kubernetes/constraints.h"
#include "libs/kubernetes/submission.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/pod_book.h"
#include "services/cleanup/domain/observer.h"

namespace fluxqueue::kubernetes_test {
namespace {

using nlohmann::json;

// Neither library knows the other.
static_assert(kubernetes::kMaxPreferencesBytes <= graph::kMaxPreferencesBytes);
static_assert(kubernetes::kMaxPodRules <= graph::kMaxPodRules);
static_assert(kubernetes::kMaxPodRuleBytes <= graph::kMaxPodRuleBytes);

// The host ports that pods of these worlds have.
const google::protobuf::RepeatedPtrField<std::string>& Ports() {
  static const auto* const kPorts = [] {
    auto* ports = new google::protobuf::RepeatedPtrField<std::string>();
    for (const char* port : {"hostport-53-udp", "hostport-80-tcp", "hostport-80-udp"}) {
      *ports->Add() = port;
    }
    return ports;
  }();
  return *kPorts;
}

// What cleanup says of each node, by its name.
std::map<std::string, events::v1::Node> Picture(const json& nodes, const json& bound) {
  cleanup::Observer observer(Millis(60'000));
  std::set<std::string> spaces;
  for (const json& text : nodes) {
    const absl::StatusOr<kubernetes::Node> node = kubernetes::ParseNode(text.dump());
    CHECK(node.ok(), "{}", Message(node.status()));
    observer.ObserveNode(*node, Millis(0));
  }
  for (const json& text : bound) {
    const absl::StatusOr<kubernetes::Pod> pod = kubernetes::ParsePod(text.dump());
    CHECK(pod.ok(), "{}", Message(pod.status()));
    observer.ObservePod(*pod, std::nullopt);
    spaces.insert(pod->meta.namespace_name);
  }
  // Where jobs of ours are it says who the others are.
  for (const std::string& space : spaces) {
    kubernetes::Job job;
    job.meta.uid = "job-in-" + space;
    job.meta.namespace_name = space;
    observer.ObserveJob(job);
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
    specs_.push_back(matcher_core::ToNodeSpec(event, specs_.size(), Ports()));
    matcher_core::KnownNode known;
    known.ordinal = specs_.back().ordinal;
    known.bytes = event.SerializeAsString();
    known.present = true;
    book_.Put(event.name(), std::move(known));
    alone_.push_back(graph::MakeNativeEngine());
    CHECK(alone_.back()->AddNode(specs_.back()).ok());
    CHECK(all_->AddNode(specs_.back()).ok());
  }
}

void OurNodes::SetPod(const graph::Jobspec& jobspec) {
  const std::string pool;
  const matcher::v1::PoolState state;
  matcher_core::Specs specs;
  specs.Edit({"pod", 0}).jobspec = std::make_shared<graph::Jobspec>(jobspec);
  matcher_core::RuledSpecs ruled;
  if (!jobspec.pods.AreNone()) ruled.Put({jobspec.pods.space, {"pod", 0}}, true);
  matcher::v1::PoolState none;
  const matcher_core::PromiseBook promises(&none);
  const std::vector<matcher_core::AllocationKey> plan;
  const matcher_core::View view{pool, state, specs, ruled, book_, promises, plan, *all_};
  const auto closures = matcher_core::PodBook(view, /*now_s=*/0)
                            .ClosuresFor({.job_id = "pod"}, jobspec, /*behind=*/{}, /*queue=*/0);
  closures_ = closures == nullptr ? std::vector<graph::Closure>() : closures->all;
  all_->SetClosures(closures_);
}

bool OurNodes::CanRunOn(size_t node, const graph::Jobspec& jobspec) {
  const bool is_closed = std::any_of(closures_.begin(), closures_.end(), [&](const auto& closure) {
    return closure.Meets(0, 1) && closure.nodes.Matches(specs_[node]);
  });
  if (is_closed) return false;
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
