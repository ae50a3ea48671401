// What one match, one refusal, one release cost: nodes of 32 cores, 128 Gi and 4 gpus; jobs of one
// slot of 4 cores unless said.
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "libs/graph/engine.h"

namespace fluxqueue::graph {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

Jobspec Spec(int64_t slots, int64_t cpu, const std::string& constraints = "{}") {
  const std::string text = R"({"version":1,"resources":[{"type":"slot","label":"s","count":)" +
                           std::to_string(slots) + R"(,"with":[{"type":"cpu","count":)" +
                           std::to_string(cpu) +
                           R"(},{"type":"memory","count":4294967296},{"type":"pods","count":1}]}],)"
                           R"("tasks":[{"command":["x"],"slot":"s","count":{"per_slot":1}}],)"
                           R"("attributes":{"system":{"constraints":)" +
                           constraints + "}}}";
  return *ParseJobspec(text);
}

std::unique_ptr<Engine> Machine(int64_t nodes, const char* policy) {
  std::unique_ptr<Engine> engine = MakeNativeEngine();
  (void)engine->SetPolicy(policy);
  for (int64_t i = 0; i < nodes; ++i) {
    NodeSpec node;
    node.name = "node-" + std::to_string(i);
    node.ordinal = static_cast<uint64_t>(i);
    node.resources = {{"cpu", 32000}, {"gpu", 4}, {"memory", 128 * kGi}, {"pods", 110}};
    node.labels = {{"half", std::to_string(i % 2)}, {"host", std::to_string(i)}};
    (void)engine->AddNode(node);
  }
  return engine;
}

AllocationKey Key(int64_t job) {
  return {"job-" + std::to_string(job), 1, 0};
}

// Fills the machine from empty, then empties it, again and again; the time is that of the matches.
void Fill(benchmark::State& state, const char* policy, const Jobspec& spec) {
  const std::unique_ptr<Engine> engine = Machine(state.range(0), policy);
  int64_t jobs = 0;
  for (auto unused : state) {
    const Outcome outcome = engine->Match({.key = Key(jobs), .jobspec = spec});
    if (outcome.kind == OutcomeKind::kAllocated) {
      ++jobs;
      continue;
    }
    state.PauseTiming();
    while (jobs > 0) engine->Release(Key(--jobs));
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations());
}

void FillFirst(benchmark::State& state) {
  Fill(state, "first", Spec(1, 4000));
}
void FillLonode(benchmark::State& state) {
  Fill(state, "lonode", Spec(1, 4000));
}
void FillHalf(benchmark::State& state) {
  Fill(state, "first", Spec(1, 4000, R"({"properties":["half=1"]})"));
}
void FillGang16(benchmark::State& state) {
  Fill(state, "first", Spec(16, 4000));
}

void FillUp(Engine* engine) {
  const Jobspec spec = Spec(1, 4000);
  for (int64_t job = 0;; ++job) {
    if (engine->Match({.key = Key(job), .jobspec = spec}).kind != OutcomeKind::kAllocated) return;
  }
}

void RefuseFull(benchmark::State& state) {
  const std::unique_ptr<Engine> engine = Machine(state.range(0), "first");
  FillUp(engine.get());
  const Jobspec spec = Spec(1, 4000);
  for (auto unused : state) {
    benchmark::DoNotOptimize(engine->Match({.key = {"other", 1, 0}, .jobspec = spec}).kind);
  }
}

void ExplainFull(benchmark::State& state) {
  const std::unique_ptr<Engine> engine = Machine(state.range(0), "first");
  FillUp(engine.get());
  const Jobspec spec = Spec(1, 4000);
  for (auto unused : state) benchmark::DoNotOptimize(engine->Explain(spec).slots_now);
}

void ReleaseAndMatch(benchmark::State& state) {
  const std::unique_ptr<Engine> engine = Machine(state.range(0), "first");
  FillUp(engine.get());
  const Jobspec spec = Spec(1, 4000);
  const int64_t held = static_cast<int64_t>(engine->allocations());
  int64_t job = 0;
  for (auto unused : state) {
    engine->Release(Key(job));
    engine->Match({.key = Key(job), .jobspec = spec});
    job = (job + 7919) % held;
  }
}

void Load(benchmark::State& state) {
  for (auto unused : state) benchmark::DoNotOptimize(Machine(state.range(0), "first")->nodes());
}

void Parse(benchmark::State& state) {
  for (auto unused : state) benchmark::DoNotOptimize(Spec(1, 4000).slots);
}

BENCHMARK(FillFirst)->Arg(1000)->Arg(10000)->Arg(100000);
BENCHMARK(FillLonode)->Arg(1000)->Arg(10000)->Arg(100000);
BENCHMARK(FillHalf)->Arg(1000)->Arg(10000)->Arg(100000);
BENCHMARK(FillGang16)->Arg(1000)->Arg(10000)->Arg(100000);
BENCHMARK(RefuseFull)->Arg(1000)->Arg(10000)->Arg(100000);
BENCHMARK(ExplainFull)->Arg(1000)->Arg(10000)->Arg(100000);
BENCHMARK(ReleaseAndMatch)->Arg(1000)->Arg(10000)->Arg(100000);
BENCHMARK(Load)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK(Parse);

}  // namespace
}  // namespace fluxqueue::graph

BENCHMARK_MAIN();
