#include "libs/simulation/fill.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/graph/forecast.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::simulation {
namespace {

using graph::GeneralEngine;
using Random = std::mt19937_64;

int64_t GpusOf(const trace::TraceNode& node) {
  const auto gpus = node.offers.find(std::string(graph::kGpuMilli));
  return gpus == node.offers.end() ? 0 : gpus->second;
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

// What the engine is told of the pods that come.
class Teller {
 public:
  Teller(GeneralEngine* engine, bool forecasts) : engine_(*engine), forecasts_(forecasts) {}

  // Of the mix, before any pod comes.
  void Tell(const std::vector<FillPod>& pods, const PodDraw& draw, Random random) {
    if (!forecasts_) return engine_.SetWorkload(draw.Shapes(pods));
    for (int i = 0; i < kSeenBefore; ++i) Learn(pods[draw.Next(&random)]);
    engine_.SetWorkload(forecast_.Shapes());
  }

  void See(const FillPod& pod) {
    if (!forecasts_) return;
    Learn(pod);
    if (forecast_.changed()) engine_.SetWorkload(forecast_.Shapes());
  }

 private:
  void Learn(const FillPod& pod) {
    if (pod.gpu == 0) return;
    graph::WorkloadShape shape = pod.shape;
    shape.count = 1;
    forecast_.Arrive(std::to_string(seen_++ % kUsers), shape, 0);
  }

  GeneralEngine& engine_;
  const bool forecasts_;
  graph::Forecast forecast_;
  int seen_ = 0;
};

// What runs, or would if it had fitted.
struct Present {
  graph::JobNumber job = 0;
  int64_t gpu = 0;
  bool fits = false;
};

// The cluster while pods come and go.
class Play {
 public:
  Play(GeneralEngine* engine, Teller* teller, Random* random)
      : engine_(*engine), teller_(*teller), random_(*random) {}

  absl::StatusOr<bool> Come(const FillPod& pod) {
    teller_.See(pod);
    ASSIGN_OR_RETURN(const graph::MatchAnswer answer,
                     engine_.Match(graph::MatchOperation::kAllocate, ++jobs_, pod.request));
    const bool fits = answer.status == graph::MatchStatus::kAllocated;
    present_.push_back({jobs_, pod.gpu, fits});
    asked_ += pod.gpu;
    allocated_ += fits ? pod.gpu : 0;
    return fits;
  }

  // REQUIRES: something is present.
  void EndAny() {
    std::swap(present_[random_() % present_.size()], present_.back());
    const Present& ends = present_.back();
    if (ends.fits) engine_.Cancel(ends.job);
    asked_ -= ends.gpu;
    allocated_ -= ends.fits ? ends.gpu : 0;
    present_.pop_back();
  }

  bool empty() const { return present_.empty(); }
  int64_t asked() const { return asked_; }
  int64_t allocated() const { return allocated_; }

 private:
  GeneralEngine& engine_;
  Teller& teller_;
  Random& random_;
  graph::JobNumber jobs_ = 0;
  std::vector<Present> present_;
  int64_t asked_ = 0;
  int64_t allocated_ = 0;
};

void Count(const FillPod& pod, bool fits, FillResult* result) {
  const auto count = [&](size_t pod_class) {
    ++result->drawn[pod_class];
    result->dropped[pod_class] += fits ? 0 : 1;
  };
  count(pod.pod_class);
  if (pod.names_model) count(kFillClasses.size() - 1);
}

const PodDraw& DrawAt(const FillSetting& setting, bool later) {
  return later && setting.later.has_value() ? *setting.later : setting.pods;
}

absl::Status FillUp(const std::vector<FillPod>& pods,
                    const FillSetting& setting,
                    int64_t there,
                    Random* random,
                    Play* play,
                    FillResult* result) {
  while (true) {
    const FillPod& pod = pods[DrawAt(setting, play->asked() > there / 2).Next(random)];
    if (play->asked() + pod.gpu > there) break;
    ASSIGN_OR_RETURN(const bool fits, play->Come(pod));
    Count(pod, fits, result);
  }
  result->left.push_back(static_cast<double>(there - play->allocated()) / graph::kWholeDevice);
  return absl::OkStatus();
}

absl::Status Churn(const std::vector<FillPod>& pods,
                   const FillSetting& setting,
                   int64_t there,
                   Random* random,
                   Play* play,
                   FillResult* result) {
  const auto most = static_cast<int64_t>(*setting.load * static_cast<double>(there));
  const int64_t begin = most + there;
  const int64_t end = begin + kCountedTurns * there;
  double missing = 0;
  int64_t counted = 0;
  for (int64_t asked = 0; asked < end;) {
    const FillPod& pod = pods[DrawAt(setting, asked > (begin + end) / 2).Next(random)];
    while (!play->empty() && play->asked() + pod.gpu > most) play->EndAny();
    ASSIGN_OR_RETURN(const bool fits, play->Come(pod));
    asked += pod.gpu;
    if (asked <= begin) continue;
    Count(pod, fits, result);
    missing += static_cast<double>(play->asked() - play->allocated());
    ++counted;
  }
  result->left.push_back(missing / static_cast<double>(counted) / graph::kWholeDevice);
  return absl::OkStatus();
}

}  // namespace

double FillResult::MeanLeft() const {
  return std::accumulate(left.begin(), left.end(), 0.0) / static_cast<double>(left.size());
}

double FillResult::Dropped(size_t pod_class) const {
  return static_cast<double>(dropped[pod_class]) /
         static_cast<double>(std::max<int64_t>(drawn[pod_class], 1));
}

absl::Status Fill(const std::vector<trace::TraceNode>& nodes,
                  const std::vector<FillPod>& pods,
                  const FillSetting& setting,
                  uint64_t seed,
                  FillResult* result) {
  Random random(seed);
  ASSIGN_OR_RETURN(const auto engine, MakeEngine(result->policy, nodes, &random));
  Teller teller(engine.get(), setting.forecasts);
  // By random numbers of its own: the pods that come are the same for each policy.
  teller.Tell(pods, setting.pods, Random(~seed));
  int64_t there = 0;
  for (const trace::TraceNode& node : nodes) there += GpusOf(node);
  Play play(engine.get(), &teller, &random);
  return setting.load.has_value() ? Churn(pods, setting, there, &random, &play, result)
                                  : FillUp(pods, setting, there, &random, &play, result);
}

}  // namespace fluxqueue::simulation
