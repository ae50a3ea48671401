#include "libs/simulation/fill_pods.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/types.h"

namespace fluxqueue::simulation {
namespace {

using nlohmann::json;

constexpr int64_t kWholeNode = 8 * graph::kWholeDevice;
// As kFillClasses, but in a word each. Pods without gpus cannot be named: what is drawn fills gpus.
constexpr std::array<std::string_view, kFillClasses.size()> kMixNames = {
    "", "share", "one", "several", "whole", "model"};
constexpr size_t kModel = 5;
// Pods of every class may name a model, so the shares of classes and that of models are met in turn
// until both hold.
constexpr int kRounds = 64;
constexpr double kPrecision = 1e-6;
// Weights of all pods together.
constexpr double kWhole = 1e12;

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
  pod.names_model = !job.gpu_models.empty();
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

// The pods in groups that exclude each other, and what share of all each group is to have.
struct Grouping {
  std::vector<size_t> of;       // of each pod
  std::vector<double> targets;  // of each group
};

std::vector<double> SharesOf(const Grouping& grouping, const std::vector<double>& weights) {
  std::vector<double> shares(grouping.targets.size());
  for (size_t i = 0; i < weights.size(); ++i) shares[grouping.of[i]] += weights[i];
  return shares;
}

bool Holds(const Grouping& grouping, const std::vector<double>& weights) {
  const std::vector<double> shares = SharesOf(grouping, weights);
  return std::equal(shares.begin(), shares.end(), grouping.targets.begin(), [](double a, double b) {
    return std::abs(a - b) < kPrecision;
  });
}

void Meet(const Grouping& grouping, std::vector<double>* weights) {
  const std::vector<double> shares = SharesOf(grouping, *weights);
  for (size_t i = 0; i < weights->size(); ++i) {
    const size_t group = grouping.of[i];
    if (shares[group] > 0) (*weights)[i] *= grouping.targets[group] / shares[group];
  }
}

// By the classes that are named, with all others in one group; and by whether pods name a model.
std::vector<Grouping> GroupingsOf(const std::vector<FillPod>& pods, const Mix& mix) {
  Grouping by_gpus{.of = std::vector<size_t>(pods.size()), .targets = {1}};
  std::vector<Grouping> groupings;
  for (const MixPart& part : mix) {
    if (part.pod_class == kModel) {
      Grouping& by_model = groupings.emplace_back();
      by_model.targets = {1 - part.share, part.share};
      for (const FillPod& pod : pods) by_model.of.push_back(pod.names_model ? 1 : 0);
      continue;
    }
    for (size_t i = 0; i < pods.size(); ++i) {
      if (pods[i].pod_class == part.pod_class) by_gpus.of[i] = by_gpus.targets.size();
    }
    by_gpus.targets.push_back(part.share);
    by_gpus.targets[0] = std::max(0.0, by_gpus.targets[0] - part.share);
  }
  if (by_gpus.targets.size() > 1) groupings.push_back(std::move(by_gpus));
  return groupings;
}

absl::StatusOr<MixPart> ParsePart(std::string_view text) {
  const size_t sign = text.find('=');
  const auto name = std::find(kMixNames.begin() + 1, kMixNames.end(), text.substr(0, sign));
  if (sign == std::string_view::npos || name == kMixNames.end()) {
    return InvalidArgument(
        "mix: \"{}\": wanted CLASS=SHARE, where a class is share, one, several, whole or model",
        text);
  }
  MixPart part{.pod_class = static_cast<size_t>(name - kMixNames.begin())};
  const std::string_view share = text.substr(sign + 1);
  const auto [end, error] = std::from_chars(share.data(), share.data() + share.size(), part.share);
  const bool is_number = error == std::errc() && end == share.data() + share.size();
  if (!is_number || !(part.share >= 0 && part.share <= 1)) {
    return InvalidArgument("mix: \"{}\": the share is a number from 0 to 1", text);
  }
  return part;
}

}  // namespace

std::vector<FillPod> FillPods(const std::vector<trace::TraceJob>& jobs) {
  std::vector<FillPod> pods;
  pods.reserve(jobs.size());
  for (const trace::TraceJob& job : jobs) pods.push_back(PodOf(job));
  return pods;
}

absl::StatusOr<Mix> ParseMix(std::string_view text) {
  Mix mix;
  double sum = 0;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    ASSIGN_OR_RETURN(const MixPart part, ParsePart(one));
    const bool twice = std::any_of(mix.begin(), mix.end(), [&](const MixPart& other) {
      return other.pod_class == part.pod_class;
    });
    if (twice) return InvalidArgument("mix: {} is named twice", kMixNames[part.pod_class]);
    if (part.pod_class != kModel) sum += part.share;
    mix.push_back(part);
  }
  if (sum > 1 + kPrecision) return InvalidArgument("mix: the shares are {} in all", sum);
  return mix;
}

absl::StatusOr<PodDraw> PodDraw::Make(const std::vector<FillPod>& pods, const Mix& mix) {
  std::vector<double> weights(pods.size(), 1 / static_cast<double>(pods.size()));
  const std::vector<Grouping> groupings = GroupingsOf(pods, mix);
  for (int round = 0; round < kRounds; ++round) {
    for (const Grouping& grouping : groupings) Meet(grouping, &weights);
  }
  for (const Grouping& grouping : groupings) {
    if (Holds(grouping, weights)) continue;
    return InvalidArgument("mix: the pods of the list cannot give all of these shares");
  }
  PodDraw draw;
  uint64_t sum = 0;
  for (const double weight : weights) {
    sum += mix.empty() ? 1 : static_cast<uint64_t>(std::llround(weight * kWhole));
    draw.sums_.push_back(sum);
  }
  return draw;
}

size_t PodDraw::Next(std::mt19937_64* random) const {
  const uint64_t number = (*random)() % sums_.back();
  return static_cast<size_t>(std::upper_bound(sums_.begin(), sums_.end(), number) - sums_.begin());
}

uint64_t PodDraw::WeightOf(size_t pod) const {
  return sums_[pod] - (pod == 0 ? 0 : sums_[pod - 1]);
}

graph::Workload PodDraw::Shapes(const std::vector<FillPod>& pods) const {
  std::map<std::string, graph::WorkloadShape> by_request;
  for (size_t i = 0; i < pods.size(); ++i) {
    const uint64_t weight = WeightOf(i);
    if (weight == 0) continue;
    by_request.emplace(pods[i].request.shape, pods[i].shape).first->second.count += weight;
  }
  // Counts are taken up to some bound: these are as if the list were as long as it is.
  const uint64_t one = std::max<uint64_t>(1, sums_.back() / pods.size());
  graph::Workload workload;
  for (auto& [request, shape] : by_request) {
    shape.count = std::max<uint64_t>(1, (shape.count + one / 2) / one);
    workload.push_back(std::move(shape));
  }
  return workload;
}

}  // namespace fluxqueue::simulation
