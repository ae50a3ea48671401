// What the graph engine costs: matches, refusals, cancels, reservations, on n nodes of 32 cores and
// 4 gpus in racks of 40; jobs of one node and 4 cores unless said. One thread; a parsed request to
// a placement. Each row is measured for a bounded time.
//
// Rows that begin with "pods" are the matcher's engine, with Kubernetes nodes and pods by name. Two
// rows are of another kind: how long a pool takes to load its nodes, and how much memory a graph
// has when it is full of jobs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/graph/engine.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/packing.h"
#include "libs/graph/resource_set.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::bench {
namespace {

using graph::GeneralEngine;
using graph::JobNumber;
using graph::JobRequest;
using graph::MatchOperation;
using graph::MatchStatus;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kCores = 32;
constexpr int kGpus = 4;
constexpr int kNodesPerRack = 40;

double Seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

graph::ResourceGraph MakeGraph(int64_t nodes) {
  const std::vector<graph::synthetic::NodeShape> shapes(static_cast<size_t>(nodes),
                                                        {kCores, kGpus, {}});
  graph::ResourceGraph graph = graph::synthetic::MakeCluster(shapes, kNodesPerRack);
  const auto all = graph.OfType(graph.types().Find("node"));
  const std::vector<graph::VertexId> vertices(all.begin(), all.end());
  for (size_t i = 0; i < vertices.size(); i += 2) graph.SetProperty(vertices[i], "half", "");
  return graph;
}

JobRequest Request(const std::string& resources, int64_t duration, const std::string& more = "") {
  const auto request = graph::ParseJobRequest(fmt::format(
      R"({{"version": 1, "resources": [{}], "tasks": [],
          "attributes": {{"system": {{"duration": {}{}}}}}}})",
      resources,
      duration,
      more));
  CHECK(request.ok());
  return *request;
}

std::string Slot(int64_t count, int64_t cores) {
  return fmt::format(
      R"({{"type": "slot", "count": {}, "label": "s", "with": [{{"type": "core", "count": {}}}]}})",
      count,
      cores);
}

std::string Nodes(int64_t count, const std::string& with, bool exclusive = false) {
  return fmt::format(
      R"({{"type": "node", "count": {}, "exclusive": {}, "with": [{}]}})", count, exclusive, with);
}

JobRequest OneNode() {
  return Request(Nodes(1, Slot(1, 4)), 3600);
}

struct Result {
  std::string row;
  // Set: the row is no rate, and shows this.
  std::string text;
  int64_t nodes = 0;
  double per_second = 0;
  double p99_us = 0;
  size_t samples = 0;
};

// Calls `once` with 1, 2, 3 … until it says that there is no more, then `again` with the last
// number that there was, which makes room for another round; until the time is over.
class Meter {
 public:
  Meter(std::string row, int64_t nodes, double seconds) : seconds_(seconds) {
    result_.row = std::move(row);
    result_.nodes = nodes;
  }

  Result Run(const std::function<bool(JobNumber)>& once,
             const std::function<void(JobNumber)>& again) {
    std::vector<double> took;
    const auto begun = Clock::now();
    double spent = 0;
    JobNumber job = 1;
    for (; Seconds(Clock::now() - begun) < seconds_; ++job) {
      const auto before = Clock::now();
      const bool more = once(job);
      const double took_now = Seconds(Clock::now() - before);
      if (!more && (again == nullptr || job == 1)) break;
      if (!more) {
        again(job - 1);
        job = 0;
        continue;
      }
      took.push_back(took_now);
      spent += took_now;
    }
    result_.samples = took.size();
    if (took.empty()) return result_;
    result_.per_second = static_cast<double>(took.size()) / spent;
    const size_t rank = std::min(took.size() - 1, took.size() * 99 / 100);
    std::nth_element(took.begin(), took.begin() + static_cast<ptrdiff_t>(rank), took.end());
    result_.p99_us = took[rank] * 1e6;
    return result_;
  }

 private:
  double seconds_;
  Result result_;
};

class Bench {
 public:
  Bench(int64_t nodes, double seconds, std::string only)
      : nodes_(nodes), seconds_(seconds), only_(std::move(only)) {}

  std::vector<Result> Run(const std::vector<std::string>& policies) {
    if (Wants("memory, full of jobs")) Memory(policies.front());
    if (Wants("load from Kubernetes nodes")) Load();
    for (const std::string& policy : policies) {
      if (Wants("fill, " + policy)) Fill(policy);
    }
    if (Wants("fill, gpus in parts")) FillShares();
    const std::string& policy = policies.front();
    if (Wants("refused, machine full")) Refuse(policy);
    if (Wants("cancel")) Cancel(policy);
    if (Wants("64 whole nodes")) WholeNodes(policy);
    if (Wants("reserve, 1,000 mixed jobs")) Reserve(policy);
    if (Wants("16 nodes in a rack, half of all")) Gangs(policy);
    if (Wants("write R")) WriteR(policy);
    Pods();
    return std::move(results_);
  }

 private:
  bool Wants(std::string_view row) const { return row.find(only_) != std::string_view::npos; }

  std::unique_ptr<GeneralEngine> Make(const std::string& policy) const {
    auto engine = GeneralEngine::Make(MakeGraph(nodes_),
                                      {.policy = policy, .prune_filters = "ALL:core,ALL:gpu"});
    CHECK(engine.ok());
    return *std::move(engine);
  }

  // One job that holds every core.
  void MakeFull(GeneralEngine& engine) const {
    const auto answer = engine.Match(
        MatchOperation::kAllocate, 1'000'000'000, Request(Nodes(nodes_, Slot(8, 4)), 1000));
    CHECK(answer.ok() && answer->status == MatchStatus::kAllocated);
  }

  void Measure(const std::string& row,
               const std::function<bool(JobNumber)>& once,
               const std::function<void(JobNumber)>& again = nullptr) {
    results_.push_back(Meter(row, nodes_, seconds_).Run(once, again));
  }

  static std::function<void(JobNumber)> CancelAllOf(GeneralEngine& engine) {
    return [&engine](JobNumber last) {
      for (JobNumber job = 1; job <= last; ++job) engine.Cancel(job);
    };
  }

  void Fill(const std::string& policy) {
    const auto engine = Make(policy);
    const JobRequest request = OneNode();
    const auto once = [&](JobNumber job) {
      return engine->Match(MatchOperation::kAllocate, job, request)->status ==
             MatchStatus::kAllocated;
    };
    Measure("fill, " + policy, once, CancelAllOf(*engine));
  }

  // `packed`, with jobs of all the shapes that it expects.
  void FillShares() {
    const std::string gpu(graph::kGpuMilli);
    const graph::synthetic::NodeShape shape = {
        .millicores = kCores * 1000, .shares = std::vector<int64_t>(kGpus, graph::kWholeDevice)};
    auto engine =
        GeneralEngine::Make(graph::synthetic::MakeCluster(
                                std::vector(static_cast<size_t>(nodes_), shape), kNodesPerRack),
                            {.policy = "packed", .prune_filters = "ALL:cpu,ALL:" + gpu});
    CHECK(engine.ok());
    graph::Workload workload;
    std::vector<JobRequest> requests;
    for (const auto& [count, cpu, milli] : {std::tuple{3, 2000, 200},
                                            std::tuple{5, 4000, 300},
                                            std::tuple{8, 3000, 500},
                                            std::tuple{5, 6000, 700},
                                            std::tuple{20, 8000, 1000},
                                            std::tuple{2, 16000, 2000}}) {
      workload.push_back({{{"cpu", cpu}, {gpu, milli}}, {}, static_cast<uint64_t>(count)});
      requests.push_back(
          Request(Nodes(1,
                        fmt::format(R"({{"type": "slot", "count": 1, "label": "s", "with": [
                                {{"type": "cpu", "count": {}}}, {{"type": "{}", "count": {}}}]}})",
                                    cpu,
                                    gpu,
                                    milli)),
                  3600));
    }
    (*engine)->SetWorkload(workload);
    const auto once = [&](JobNumber job) {
      const JobRequest& request = requests[job % requests.size()];
      return (*engine)->Match(MatchOperation::kAllocate, job, request)->status ==
             MatchStatus::kAllocated;
    };
    Measure("fill, gpus in parts", once, CancelAllOf(**engine));
  }

  // What the process has more than before: asked for first, as memory that was given back stays.
  void Memory(const std::string& policy) {
    const int64_t before = ResidentKb();
    const auto engine = Make(policy);
    const JobRequest request = OneNode();
    JobNumber job = 1;
    while (engine->Match(MatchOperation::kAllocate, job, request)->status ==
           MatchStatus::kAllocated) {
      ++job;
    }
    const double megabytes = static_cast<double>(ResidentKb() - before) / 1024;
    results_.push_back({.row = "memory, full of jobs",
                        .text = fmt::format("{:.0f} MB ({} jobs)", megabytes, job - 1),
                        .nodes = nodes_});
  }

  static int64_t ResidentKb() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      int64_t kilobytes = 0;
      if (word == "VmRSS:" && status >> kilobytes) return kilobytes;
    }
    return 0;
  }

  std::vector<graph::NodeSpec> KubernetesNodes() const {
    std::vector<graph::NodeSpec> nodes(static_cast<size_t>(nodes_));
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].name = fmt::format("node{}", i);
      nodes[i].ordinal = i;
      nodes[i].resources = {{"cpu", kCores * 1000},
                            {"memory", int64_t{128} << 30},
                            {"nvidia.com/gpu", kGpus},
                            {"pods", 110}};
      nodes[i].labels = {{"kubernetes.io/hostname", nodes[i].name},
                         {"tenth", fmt::format("{}", i % 10)},
                         {"topology.kubernetes.io/rack", fmt::format("r{}", i / kNodesPerRack)}};
    }
    return nodes;
  }

  static graph::Jobspec Pods(int64_t count, const std::string& level = "") {
    std::string slots = fmt::format(
        R"({{"type": "slot", "count": {}, "label": "s", "with": [{{"type": "cpu", "count": 4000}},
            {{"type": "memory", "count": 4294967296}}, {{"type": "pods", "count": 1}}]}})",
        count);
    if (!level.empty()) {
      slots = fmt::format(R"({{"type": "{}", "count": 1, "with": [{}]}})", level, slots);
    }
    const auto jobspec = graph::ParseJobspec(fmt::format(
        R"({{"version": 1, "resources": [{}],
            "tasks": [{{"command": ["x"], "slot": "s", "count": {{"per_slot": 1}}}}]}})",
        slots));
    CHECK(jobspec.ok());
    return *jobspec;
  }

  // By the label "tenth": weights.
  static graph::Jobspec Preferring(graph::Jobspec jobspec,
                                   const std::map<std::string, int64_t>& weights) {
    for (const auto& [tenth, weight] : weights) {
      jobspec.preferences.terms.push_back({graph::Constraint::HasLabel("tenth", tenth), weight});
      jobspec.preferences.signature += tenth;
    }
    return jobspec;
  }

  void Pods() {
    constexpr std::string_view kRows[] = {"pods, one",
                                          "pods, 16 in one rack",
                                          "pods, refused",
                                          "pods, why refused",
                                          "pods, one, prefers a tenth",
                                          "pods, 16, prefer two tenths"};
    if (!std::any_of(std::begin(kRows), std::end(kRows), [this](auto row) { return Wants(row); })) {
      return;
    }
    const auto engine = graph::MakeNativeEngine();
    for (graph::NodeSpec& node : KubernetesNodes()) CHECK(engine->AddNode(std::move(node)).ok());
    const auto key = [](JobNumber job) {
      return graph::AllocationKey{fmt::format("job-{}", job), 1, 0};
    };
    const auto fill = [&](std::string_view row, const graph::Jobspec& jobspec) {
      const auto once = [&](JobNumber job) {
        return engine->Match({.key = key(job), .jobspec = jobspec}).placement != nullptr;
      };
      const auto empty = [&](JobNumber last) {
        for (JobNumber job = 1; job <= last; ++job) engine->Release(key(job));
      };
      Measure(std::string(row), once, empty);
      while (engine->allocations() > 0) empty(engine->allocations());
    };
    fill(kRows[0], Pods(1));
    fill(kRows[4], Preferring(Pods(1), {{"0", 10}}));
    fill(kRows[5], Preferring(Pods(16), {{"0", 10}, {"1", 5}}));
    CHECK(engine->SetLevels({"topology.kubernetes.io/rack"}).ok());
    // The graph with racks is made at the first match.
    CHECK(engine->Match({.key = key(0), .jobspec = Pods(1)}).placement != nullptr);
    engine->Release(key(0));
    fill(kRows[1], Pods(16, "rack"));
    int64_t left = 8 * nodes_;
    for (JobNumber job = 0; left > 0; ++job) {
      const int64_t slots = std::min(left, graph::kMaxSlots);
      CHECK(engine->Match({.key = key(job), .jobspec = Pods(slots)}).placement != nullptr);
      left -= slots;
    }
    const graph::Jobspec one = Pods(1);
    Measure(std::string(kRows[2]), [&](JobNumber) {
      return engine->Match({.key = {"refused", 1, 0}, .jobspec = one}).placement == nullptr;
    });
    Measure(std::string(kRows[3]),
            [&](JobNumber) { return engine->Explain(one, graph::Wording::kShort).slots_now == 0; });
  }

  void Load() {
    std::vector<graph::NodeSpec> nodes = KubernetesNodes();
    const auto engine = graph::MakeNativeEngine();
    const graph::Jobspec one = Pods(1);
    const auto begun = Clock::now();
    CHECK(engine->SetLevels({"topology.kubernetes.io/rack"}).ok());
    for (graph::NodeSpec& node : nodes) CHECK(engine->AddNode(std::move(node)).ok());
    // The first match completes it.
    CHECK(engine->Match({.key = {"job", 1, 0}, .jobspec = one}).placement != nullptr);
    results_.push_back({.row = "load from Kubernetes nodes",
                        .text = fmt::format("{:.1f} ms", Seconds(Clock::now() - begun) * 1e3),
                        .nodes = nodes_});
  }

  void Refuse(const std::string& policy) {
    const auto engine = Make(policy);
    MakeFull(*engine);
    const JobRequest request = OneNode();
    Measure("refused, machine full", [&](JobNumber job) {
      return engine->Match(MatchOperation::kAllocate, job, request)->status == MatchStatus::kBusy;
    });
  }

  void Cancel(const std::string& policy) {
    const auto engine = Make(policy);
    const JobRequest request = OneNode();
    JobNumber held = 0;
    const auto begun = Clock::now();
    while (Seconds(Clock::now() - begun) < seconds_) {
      const auto answer = engine->Match(MatchOperation::kAllocate, held + 1, request);
      if (answer->status != MatchStatus::kAllocated) break;
      ++held;
    }
    Measure("cancel", [&](JobNumber job) { return job <= held && engine->Cancel(job); });
  }

  void WholeNodes(const std::string& policy) {
    const auto engine = Make(policy);
    const JobRequest request = Request(Nodes(64, Slot(1, kCores), true), 3600);
    const auto once = [&](JobNumber job) {
      return engine->Match(MatchOperation::kAllocate, job, request)->status ==
             MatchStatus::kAllocated;
    };
    Measure("64 whole nodes", once, CancelAllOf(*engine));
  }

  void Reserve(const std::string& policy) {
    const auto engine = Make(policy);
    MakeFull(*engine);
    std::vector<JobRequest> mixed;
    for (int64_t i = 1; i <= 10; ++i) {
      mixed.push_back(Request(Nodes(1 + i % 4, Slot(1 + i % 2, 4 * (1 + i % 3))), 100 * i));
    }
    const auto once = [&](JobNumber job) {
      if (job > 1000) return false;
      const auto answer =
          engine->Match(MatchOperation::kAllocateOrElseReserve, job, mixed[job % mixed.size()]);
      return answer->status == MatchStatus::kReserved;
    };
    Measure("reserve, 1,000 mixed jobs", once, CancelAllOf(*engine));
  }

  void Gangs(const std::string& policy) {
    const auto engine = Make(policy);
    const JobRequest request = Request(
        fmt::format(R"({{"type": "rack", "count": 1, "with": [{}]}})", Nodes(16, Slot(1, 4))),
        3600,
        R"(, "constraints": {"properties": ["half"]})");
    const auto once = [&](JobNumber job) {
      return engine->Match(MatchOperation::kAllocate, job, request)->status ==
             MatchStatus::kAllocated;
    };
    Measure("16 nodes in a rack, half of all", once, CancelAllOf(*engine));
  }

  void WriteR(const std::string& policy) {
    const auto engine = Make(policy);
    const auto answer = engine->Match(MatchOperation::kAllocate, 1, OneNode());
    Measure("write R", [&](JobNumber) {
      return !graph::WriteResourceSet(
                  engine->graph(), answer->holding, graph::SetFormat::kRv1NoSched)
                  .empty();
    });
    const std::string text =
        fmt::format(R"({{"version": 1, "resources": [{}], "tasks": [], "attributes": {{}}}})",
                    Nodes(1, Slot(1, 4)));
    Measure("parse a jobspec", [&](JobNumber) { return graph::ParseJobRequest(text).ok(); });
  }

  int64_t nodes_;
  double seconds_;
  std::string only_;
  std::vector<Result> results_;
};

// How the time of one call grows with the nodes: the slope in the logarithms of first and last.
std::optional<double> Exponent(const std::vector<Result>& of_row) {
  if (of_row.size() < 2 || of_row.front().samples == 0 || of_row.back().samples == 0) {
    return std::nullopt;
  }
  const double time = of_row.front().per_second / of_row.back().per_second;
  return std::log(time) / std::log(static_cast<double>(of_row.back().nodes) /
                                   static_cast<double>(of_row.front().nodes));
}

void Print(const std::vector<Result>& results, bool as_json) {
  json report = json::array();
  std::vector<std::string> order;
  std::map<std::string, std::vector<Result>> rows;
  for (const Result& result : results) {
    if (!rows.contains(result.row)) order.push_back(result.row);
    rows[result.row].push_back(result);
  }
  if (!as_json)
    fmt::print("{:<34}{:>9}{:>14}{:>14}{:>10}\n", "", "nodes", "per second", "p99", "growth");
  for (const std::string& row : order) {
    const auto exponent = Exponent(rows[row]);
    for (const Result& result : rows[row]) {
      if (as_json && !result.text.empty()) {
        report.push_back({{"row", row}, {"nodes", result.nodes}, {"text", result.text}});
        continue;
      }
      if (as_json) {
        report.push_back({{"row", row},
                          {"nodes", result.nodes},
                          {"perSecond", result.per_second},
                          {"p99Us", result.p99_us},
                          {"samples", result.samples}});
        continue;
      }
      if (!result.text.empty()) {
        fmt::print("{:<34}{:>9}  {}\n", row, result.nodes, result.text);
        continue;
      }
      const bool last = result.nodes == rows[row].back().nodes;
      fmt::print("{:<34}{:>9}{:>14.0f}{:>11.1f} µs{:>10}\n",
                 row,
                 result.nodes,
                 result.per_second,
                 result.p99_us,
                 last && exponent.has_value() ? fmt::format("n^{:.2f}", *exponent) : "");
    }
  }
  if (as_json) fmt::print("{}\n", report.dump(2));
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue::bench;
  std::vector<int64_t> nodes = {100, 1000};
  std::vector<std::string> policies = {"first",
                                       "firstnodex",
                                       "low",
                                       "high",
                                       "lonode",
                                       "hinode",
                                       "lonodex",
                                       "hinodex",
                                       "locality",
                                       "packed",
                                       "variation"};
  double seconds = 2;
  std::string output = "table";
  std::string only;
  CLI::App app("What the graph engine costs.", "fluxqueue-bench-match");
  app.add_option("--nodes", nodes, "How many nodes; several are compared")
      ->delimiter(',')
      ->check(CLI::Range(1, 200'000));
  app.add_option("--policies", policies, "For the first row; all others use the first of them")
      ->delimiter(',');
  app.add_option("--seconds", seconds, "At most, for each row")->check(CLI::Range(0.01, 600.0));
  app.add_option("--only", only, "Rows whose name contains this");
  app.add_option("-o,--output", output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  std::vector<Result> results;
  for (const int64_t count : nodes) {
    if (output == "table") fmt::print(stderr, "{} nodes …\n", count);
    for (Result& result : Bench(count, seconds, only).Run(policies))
      results.push_back(std::move(result));
  }
  Print(results, output == "json");
  return 0;
}
