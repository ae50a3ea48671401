#include "libs/simulation/report.h"

namespace fluxqueue::simulation {
namespace {

using nlohmann::json;

json ToJson(const Spread& spread) {
  return {{"mean", spread.mean},
          {"p50", spread.p50},
          {"p95", spread.p95},
          {"p99", spread.p99},
          {"max", spread.max}};
}

json ToJson(const Figures& figures) {
  return {{"jobs", figures.jobs},
          {"backfilled", figures.backfilled},
          {"wait_seconds", ToJson(figures.wait_s)},
          {"bounded_slowdown", ToJson(figures.bounded_slowdown)}};
}

json ToJson(const Result& run) {
  json object = ToJson(run.summary.all);
  object["name"] = run.name;
  object["strategy"] = run.setting.strategy;
  object["policy"] = run.setting.policy;
  object["estimates"] = Name(run.setting.estimates);
  object["arrival_scale"] = run.setting.arrival_scale;
  object["default_duration_seconds"] = run.setting.default_duration.count() / 1000;
  object["utilisation"] = run.summary.utilisation;
  object["gpu_utilisation"] = run.summary.gpu_utilisation;
  object["fragmented_gpus"] = run.summary.fragmented_gpus;
  object["span_seconds"] = run.summary.span_s;
  object["not_started"] = run.summary.not_started;
  object["unknown_estimates"] = run.unknown_estimates;
  object["classes"] = json::array();
  for (const auto& [name, figures] : run.summary.classes) {
    object["classes"].push_back(ToJson(figures));
    object["classes"].back()["name"] = name;
  }
  if (run.summary.queues.empty()) return object;
  object["queues"] = json::array();
  for (size_t i = 0; i < run.summary.queues.size(); ++i) {
    const QueueFigures& queue = run.summary.queues[i];
    object["queues"].push_back(ToJson(queue.figures));
    object["queues"].back()["name"] = queue.name;
    object["queues"].back()["weight"] = run.setting.queues[i];
    object["queues"].back()["share"] = queue.share;
  }
  return object;
}

}  // namespace

json ToJson(const std::vector<FillResult>& fills) {
  json report = {{"policies", json::array()}};
  for (const FillResult& fill : fills) {
    json dropped = json::object();
    for (size_t i = 0; i < kFillClasses.size(); ++i) {
      dropped[std::string(kFillClasses[i])] = fill.Dropped(i);
    }
    report["policies"].push_back({{"policy", fill.policy},
                                  {"gpus_left", fill.MeanLeft()},
                                  {"of_each_seed", fill.left},
                                  {"dropped", dropped}});
  }
  return report;
}

json ToJson(const std::vector<Result>& runs, const Workload& workload) {
  json report = {{"left_out",
                  {{"without_run_time", workload.without_run_time},
                   {"without_processors", workload.without_processors},
                   {"too_wide", workload.too_wide}}},
                 {"settings", json::array()}};
  for (const Result& run : runs) report["settings"].push_back(ToJson(run));
  return report;
}

}  // namespace fluxqueue::simulation
