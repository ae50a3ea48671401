#include "libs/simulation/fill.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::simulation {
namespace {

using graph::GeneralEngine;
using nlohmann::json;
using Random = std::mt19937_64;

constexpr int64_t kWholeNode = 8 * graph::kWholeDevice;

graph::JobRequest RequestOf(const graph::Amounts& amounts, const json& constraint) {
  json with = json::array();
  for (const auto& [resource, amount] : amounts) {
    with.push_back({{"type", resource}, {"count", amount}});
  }
  json system = {{"duration", 0}};
  if (!constraint.is_null()) system["constraints"] = constraint;
  const json jobspec = {
      {"version", 1},
      {"resources", {{{"type", "slot"}, {"count", 1}, {"label", "s"}, {"with", with}}}},
      {"tasks", json::array()},
      {"attributes", {{"system", system}}}};
  const auto request = graph::ParseJobRequest(jobspec.dump());
  CHECK(request.ok(), "{}", Message(request.status()));
  return *request;
}

size_t ClassOf(int64_t gpu) {
  if (gpu == 0) return 0;
  if (gpu < graph::kWholeDevice) return 1;
  if (gpu == graph::kWholeDevice) return 2;
  return gpu < kWholeNode ? 3 : 4;
}

FillPod PodOf(const trace::TraceJob& job) {
  FillPod pod;
  for (const auto& [resource, amount] : job.requests) {
    pod.shape.amounts.push_back({resource, amount});
    if (resource == graph::kGpuMilli) pod.gpu = amount;
  }
  pod.pod_class = ClassOf(pod.gpu);
  json constraint;
  for (const std::string& model : job.gpu_models) {
    constraint["or"].push_back({{"properties", {"gpu-model=" + model}}});
  }
  if (!constraint.is_null()) {
    std::optional<std::vector<graph::Toleration>> tolerations;
    pod.shape.constraint = *graph::Constraint::Parse(constraint, "gpu_spec", &tolerations);
  }
  pod.request = RequestOf(pod.shape.amounts, constraint);
  return pod;
}

int64_t GpusOf(const trace::TraceNode& node) {
  const auto gpus = node.offers.find(std::string(graph::kGpuMilli));
  return gpus == node.offers.end() ? 0 : gpus->second;
}

graph::Workload ShapesOf(const std::vector<FillPod>& pods) {
  std::map<std::string, graph::WorkloadShape> by_request;
  for (const FillPod& pod : pods) {
    graph::WorkloadShape& shape = by_request.emplace(pod.request.shape, pod.shape).first->second;
    ++shape.count;
  }
  graph::Workload workload;
  for (auto& [request, shape] : by_request) workload.push_back(std::move(shape));
  return workload;
}

absl::StatusOr<std::unique_ptr<GeneralEngine>> MakeEngine(const std::string& policy,
                                                          std::vector<trace::TraceNode> nodes,
                                                          Random* random) {
  for (size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[(*random)() % i]);
  const std::string gpu(graph::kGpuMilli);
  graph::synthetic::GraphBuilder builder;
  const graph::VertexId cluster = builder.Add("cluster", nullptr);
  std::vector<graph::VertexId> vertices;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const graph::VertexId node = builder.Add("node", &cluster, 1, static_cast<int64_t>(n));
    vertices.push_back(node);
    for (const auto& [resource, amount] : nodes[n].offers) {
      if (resource != gpu) builder.Add(resource, &node, amount, 0, true);
    }
    for (int64_t i = 0; i < GpusOf(nodes[n]) / graph::kWholeDevice; ++i) {
      builder.Add(gpu, &node, graph::kWholeDevice, i, true);
    }
  }
  graph::ResourceGraph graph = builder.Take();
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].gpu_model.empty()) continue;
    graph.SetProperty(vertices[n], "gpu-model", nodes[n].gpu_model);
  }
  return GeneralEngine::Make(std::move(graph),
                             {.policy = policy, .prune_filters = "ALL:cpu,ALL:" + gpu});
}

}  // namespace

std::vector<FillPod> FillPods(const std::vector<trace::TraceJob>& jobs) {
  std::vector<FillPod> pods;
  pods.reserve(jobs.size());
  for (const trace::TraceJob& job : jobs) pods.push_back(PodOf(job));
  return pods;
}

double FillResult::MeanLeft() const {
  return std::accumulate(left.begin(), left.end(), 0.0) / static_cast<double>(left.size());
}

double FillResult::Dropped(size_t pod_class) const {
  return static_cast<double>(dropped[pod_class]) /
         static_cast<double>(std::max<int64_t>(drawn[pod_class], 1));
}

absl::Status Fill(const std::vector<trace::TraceNode>& nodes,
                  const std::vector<FillPod>& pods,
                  uint64_t seed,
                  FillResult* result) {
  Random random(seed);
  ASSIGN_OR_RETURN(const auto engine, MakeEngine(result->policy, nodes, &random));
  engine->SetWorkload(ShapesOf(pods));
  int64_t there = 0;
  for (const trace::TraceNode& node : nodes) there += GpusOf(node);
  int64_t asked = 0;
  int64_t allocated = 0;
  for (graph::JobNumber job = 1;; ++job) {
    const FillPod& pod = pods[random() % pods.size()];
    if (asked + pod.gpu > there) break;
    asked += pod.gpu;
    ++result->drawn[pod.pod_class];
    ASSIGN_OR_RETURN(const graph::MatchAnswer answer,
                     engine->Match(graph::MatchOperation::kAllocate, job, pod.request));
    const bool fits = answer.status == graph::MatchStatus::kAllocated;
    allocated += fits ? pod.gpu : 0;
    result->dropped[pod.pod_class] += fits ? 0 : 1;
  }
  result->left.push_back(static_cast<double>(there - allocated) / graph::kWholeDevice);
  return absl::OkStatus();
}

}  // namespace fluxqueue::simulation
