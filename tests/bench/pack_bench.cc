// How many gpus a policy leaves unused on a full cluster: the experiment of "Beware of
// Fragmentation" (USENIX ATC 2023) with the traces of openb.
//
// Pods drawn at random from a list, each as often as it is drawn, come to an empty cluster and
// stay. One that does not fit is dropped. It is over when the gpus that were asked for would be
// more than those that exist; what counts is how many of those are not allocated then. The nodes'
// order, which their ids follow, is drawn too. `packed` is told how often each kind of pod is in
// the list.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/packing.h"
#include "libs/graph/synthetic_graphs.h"
#include "libs/trace/openb.h"

namespace fluxqueue::bench {
namespace {

using graph::GeneralEngine;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Random = std::mt19937_64;

constexpr int64_t kWholeNode = 8 * graph::kWholeDevice;
// Of pods by what they ask for.
constexpr std::array<const char*, 5> kClasses = {
    "no gpu", "share", "one gpu", "several", "whole node"};

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Pod {
  int64_t gpu = 0;  // thousandths
  size_t pod_class = 0;
  graph::JobRequest request;
  graph::WorkloadShape shape;
};

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
  CHECK(request.ok());
  return *request;
}

size_t ClassOf(int64_t gpu) {
  if (gpu == 0) return 0;
  if (gpu < graph::kWholeDevice) return 1;
  if (gpu == graph::kWholeDevice) return 2;
  return gpu < kWholeNode ? 3 : 4;
}

Pod PodOf(const trace::TraceJob& job) {
  Pod pod;
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

graph::Workload WorkloadOf(const std::vector<Pod>& pods) {
  std::map<std::string, graph::WorkloadShape> by_request;
  for (const Pod& pod : pods) {
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

struct Result {
  std::string policy;
  std::vector<double> left;  // gpus, by seed
  std::array<int64_t, kClasses.size()> drawn{};
  std::array<int64_t, kClasses.size()> dropped{};
  double seconds = 0;

  double MeanLeft() const {
    double sum = 0;
    for (const double one : left) sum += one;
    return sum / static_cast<double>(left.size());
  }
};

absl::Status Play(const std::vector<trace::TraceNode>& nodes,
                  const std::vector<Pod>& pods,
                  uint64_t seed,
                  Result* result) {
  Random random(seed);
  ASSIGN_OR_RETURN(const auto engine, MakeEngine(result->policy, nodes, &random));
  engine->SetWorkload(WorkloadOf(pods));
  int64_t there = 0;
  for (const trace::TraceNode& node : nodes) there += GpusOf(node);
  int64_t asked = 0;
  int64_t allocated = 0;
  const auto begun = Clock::now();
  for (graph::JobNumber job = 1;; ++job) {
    const Pod& pod = pods[random() % pods.size()];
    if (asked + pod.gpu > there) break;
    asked += pod.gpu;
    ++result->drawn[pod.pod_class];
    ASSIGN_OR_RETURN(const graph::MatchAnswer answer,
                     engine->Match(graph::MatchOperation::kAllocate, job, pod.request));
    const bool fits = answer.status == graph::MatchStatus::kAllocated;
    allocated += fits ? pod.gpu : 0;
    result->dropped[pod.pod_class] += fits ? 0 : 1;
  }
  result->seconds += std::chrono::duration<double>(Clock::now() - begun).count();
  result->left.push_back(static_cast<double>(there - allocated) / graph::kWholeDevice);
  return absl::OkStatus();
}

void Print(const std::vector<Result>& results, bool as_json) {
  json report = json::array();
  if (!as_json) {
    fmt::print("{:<12}{:>10}{:>18}", "", "gpus left", "of each seed");
    for (const char* name : kClasses) fmt::print("{:>12}", name);
    fmt::print("{:>10}\n", "s a seed");
  }
  for (const Result& result : results) {
    const auto [least, most] = std::minmax_element(result.left.begin(), result.left.end());
    const double seconds = result.seconds / static_cast<double>(result.left.size());
    json dropped;
    std::string columns;
    for (size_t i = 0; i < kClasses.size(); ++i) {
      const auto drawn = static_cast<double>(std::max<int64_t>(result.drawn[i], 1));
      const double share = static_cast<double>(result.dropped[i]) / drawn;
      dropped[kClasses[i]] = share;
      columns += fmt::format("{:>10.1f} %", 100 * share);
    }
    report.push_back({{"policy", result.policy},
                      {"gpusLeft", result.MeanLeft()},
                      {"ofEachSeed", result.left},
                      {"dropped", dropped},
                      {"seconds", seconds}});
    if (as_json) continue;
    const std::string range = fmt::format("{:.0f} to {:.0f}", *least, *most);
    fmt::print("{:<12}{:>10.0f}{:>18}{}{:>10.1f}\n",
               result.policy,
               result.MeanLeft(),
               range,
               columns,
               seconds);
  }
  if (as_json) fmt::print("{}\n", report.dump(2));
}

absl::StatusOr<std::vector<Result>> Run(const std::string& nodes_path,
                                        const std::string& pods_path,
                                        const std::vector<std::string>& policies,
                                        uint64_t seeds) {
  ASSIGN_OR_RETURN(const std::vector<trace::TraceNode> nodes,
                   trace::ParseOpenbNodes(ReadText(nodes_path), {.file = nodes_path}));
  ASSIGN_OR_RETURN(const trace::Trace trace,
                   trace::ParseOpenbPods(ReadText(pods_path), {.file = pods_path}));
  if (nodes.empty() || trace.jobs.empty()) {
    return InvalidArgument("{} or {}: names nothing", nodes_path, pods_path);
  }
  std::vector<Pod> pods;
  for (const trace::TraceJob& job : trace.jobs) pods.push_back(PodOf(job));
  std::vector<Result> results;
  for (const std::string& policy : policies) {
    Result& result = results.emplace_back();
    result.policy = policy;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      RETURN_IF_ERROR(Play(nodes, pods, seed, &result));
    }
  }
  return results;
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue::bench;
  std::string nodes_path = "tests/data/openb_slice_nodes.csv";
  std::string pods_path = "tests/data/openb_slice_pods.csv";
  std::vector<std::string> policies = {"lonode", "packed"};
  uint64_t seeds = 5;
  std::string output = "table";
  CLI::App app("How many gpus a policy leaves unused.", "fluxqueue-bench-pack");
  app.add_option("--nodes", nodes_path, "A node list of openb; the default is below the repository")
      ->check(CLI::ExistingFile);
  app.add_option("--pods", pods_path, "A pod list of openb")->check(CLI::ExistingFile);
  app.add_option("--policies", policies, "lonode is first fit in the order of the nodes")
      ->delimiter(',');
  app.add_option("--seeds", seeds, "The mean of so many")->check(CLI::Range(1, 1000));
  app.add_option("-o,--output", output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  const auto results = Run(nodes_path, pods_path, policies, seeds);
  if (!results.ok()) {
    fmt::print(stderr, "{}\n", fluxqueue::Message(results.status()));
    return 1;
  }
  Print(*results, output == "json");
  return 0;
}
