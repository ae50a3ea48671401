// Random histories on random clusters, against what must hold whatever the policy.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "libs/graph/general_engine.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::graph {
namespace {

using synthetic::MakeCluster;
using synthetic::NodeShape;

struct Step {
  bool cancel = false;
  JobNumber job = 0;
  MatchOperation operation = MatchOperation::kAllocate;
  std::string jobspec;
};

// Gpus that can be divided: mostly several of one size, which an index can search.
rc::Gen<std::vector<int64_t>> AnyShares() {
  using Sizes = std::vector<int64_t>;
  return rc::gen::weightedOneOf<Sizes>(
      {{2, rc::gen::just(Sizes())},
       {4, rc::gen::map(rc::gen::inRange<size_t>(1, 5), [](size_t n) { return Sizes(n, 1000); })},
       {1, rc::gen::container<Sizes>(rc::gen::element<int64_t>(500, 1000, 1500))}});
}

rc::Gen<std::vector<NodeShape>> AnyNodes() {
  const auto node = rc::gen::build<NodeShape>(
      rc::gen::set(&NodeShape::cores, rc::gen::inRange(1, 5)),
      rc::gen::set(&NodeShape::gpus, rc::gen::inRange(0, 3)),
      rc::gen::set(&NodeShape::millicores, rc::gen::element<int64_t>(0, 1000, 2500)),
      rc::gen::set(&NodeShape::memory,
                   rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(1, 8))),
      rc::gen::set(&NodeShape::shares, AnyShares()));
  return rc::gen::nonEmpty(rc::gen::resize(6, rc::gen::container<std::vector<NodeShape>>(node)));
}

// `of_gpus`: of gpus that can be divided, and little else.
std::string AnyJobspec(bool of_gpus = false) {
  const auto count = [](int most) { return std::to_string(*rc::gen::inRange(1, most + 1)); };
  std::string parts = "{type: core, count: " + count(4) + "}";
  if (*rc::gen::arbitrary<bool>()) parts += ", {type: gpu, count: " + count(2) + "}";
  if (*rc::gen::arbitrary<bool>()) parts += ", {type: memory, count: " + count(9) + "}";
  const std::string millicores = "{type: cpu, count: " + count(1500) + "}";
  if (*rc::gen::inRange(0, 3) == 0) parts += ", " + millicores;
  if (*rc::gen::inRange(0, 4) == 0) parts = millicores;
  const std::string share = *rc::gen::element<std::string>("250", "300", "600", "1000", "1800");
  const std::string shares = "{type: " + std::string(kGpuMilli) + ", count: " + share;
  if (*rc::gen::inRange(0, 3) == 0) parts += ", " + shares + "}";
  if (of_gpus || *rc::gen::inRange(0, 4) == 0) {
    parts = shares + "}, {type: cpu, count: " + count(of_gpus ? 400 : 1500) + "}";
  }
  std::string slot = "{type: slot, label: a, count: " + count(3) + ", with: [" + parts + "]}";
  const int above = *rc::gen::inRange(0, 4);  // 3: a rack, without a node between
  if (above == 1 || above == 2) {
    const std::string exclusive = *rc::gen::element<std::string>("", "", ", exclusive: true");
    slot = "{type: node, count: " + count(3) + exclusive + ", with: [" + slot + "]}";
  }
  if (above >= 2) slot = "{type: rack, count: " + count(2) + ", with: [" + slot + "]}";
  if (*rc::gen::inRange(0, 4) == 0) slot = "{type: cluster, count: 1, with: [" + slot + "]}";
  return "version: 1\nresources: [" + slot +
         "]\ntasks: []\nattributes: {system: {duration: " + count(30) + "}}";
}

std::vector<Step> AnySteps() {
  std::vector<Step> steps(static_cast<size_t>(*rc::gen::inRange(1, 30)));
  JobNumber next = 1;
  for (Step& step : steps) {
    step.cancel = next > 1 && *rc::gen::inRange(0, 4) == 0;
    step.job = step.cancel ? *rc::gen::inRange<JobNumber>(1, next) : next++;
    step.operation = *rc::gen::element(MatchOperation::kAllocate,
                                       MatchOperation::kAllocateWithSatisfiability,
                                       MatchOperation::kAllocateOrElseReserve);
    if (!step.cancel) step.jobspec = AnyJobspec();
  }
  return steps;
}

std::string AnyPolicy() {
  return *rc::gen::element<std::string>("first",
                                        "firstnodex",
                                        "high",
                                        "low",
                                        "hinode",
                                        "lonode",
                                        "hinodex",
                                        "lonodex",
                                        "locality",
                                        "packed",
                                        "variation");
}

Workload AnyWorkload() {
  Workload workload(*rc::gen::inRange<size_t>(0, 5));
  for (WorkloadShape& shape : workload) {
    shape.count = *rc::gen::inRange<uint64_t>(0, 100);
    const std::string gpus = *rc::gen::element<std::string>(std::string(kGpuMilli), "gpu");
    shape.amounts = {{gpus, *rc::gen::inRange<int64_t>(1, gpus == "gpu" ? 4 : 3000)}};
    using Most = std::pair<std::string, int64_t>;
    for (const auto& [resource, most] :
         {Most("core", 4), Most("cpu", 1500), Most("memory", 9), Most("unknown", 2)}) {
      const int64_t amount = *rc::gen::inRange<int64_t>(0, most);
      const bool named = *rc::gen::inRange(0, resource == "unknown" ? 9 : 2) == 0;
      if (amount > 0 && named) shape.amounts.push_back({resource, amount});
    }
    if (*rc::gen::inRange(0, 3) == 0) shape.constraint = Constraint::HasLabel("model", "a");
  }
  return workload;
}

std::unique_ptr<GeneralEngine> Make(const std::vector<NodeShape>& nodes,
                                    const std::string& policy,
                                    bool indexes = true) {
  auto engine = GeneralEngine::Make(
      MakeCluster(nodes),
      {.policy = policy, .prune_filters = "ALL:core,ALL:gpu", .indexes = indexes});
  RC_ASSERT(engine.ok());
  return *std::move(engine);
}

MatchAnswer Play(GeneralEngine& engine, const Step& step) {
  if (step.cancel) {
    engine.Cancel(step.job);
    return {};
  }
  const auto request = ParseJobRequest(step.jobspec);
  RC_ASSERT(request.ok());
  const auto answer = engine.Match(step.operation, step.job, *request);
  RC_ASSERT(answer.ok());
  RC_LOG() << "operation " << static_cast<int>(step.operation) << ", job " << step.job << ", "
           << step.jobspec << "\n  status " << static_cast<int>(answer->status) << ":";
  for (const HeldVertex& held : answer->holding.vertices) {
    RC_LOG() << " " << engine.graph().PathOf(held.vertex) << "=" << held.amount;
  }
  RC_LOG() << "\n";
  return *answer;
}

bool Overlap(const Holding& a, const Holding& b) {
  return a.at_s < b.at_s + b.duration_s && b.at_s < a.at_s + a.duration_s;
}

// Of what can be divided, no more is held than there is.
void CheckShares(const ResourceGraph& graph, const std::map<JobNumber, Holding>& jobs) {
  for (const auto& [now, begins] : jobs) {
    std::map<VertexId, int64_t> held;
    for (const auto& [job, holding] : jobs) {
      const int64_t at = begins.at_s;
      if (holding.at_s > at || holding.at_s + holding.duration_s <= at) continue;
      for (const HeldVertex& vertex : holding.vertices) held[vertex.vertex] += vertex.amount;
    }
    for (const auto& [v, amount] : held) {
      RC_ASSERT(!graph.vertex(v).divisible || amount <= graph.vertex(v).size);
    }
  }
}

// No vertex is held by two jobs at one time, nor used by another job where it is held.
void CheckHeldOnce(const ResourceGraph& graph, const std::map<JobNumber, Holding>& jobs) {
  CheckShares(graph, jobs);
  for (auto a = jobs.begin(); a != jobs.end(); ++a) {
    std::map<VertexId, bool> held;
    for (const HeldVertex& vertex : a->second.vertices) held[vertex.vertex] = vertex.exclusive;
    for (auto b = std::next(a); b != jobs.end(); ++b) {
      if (!Overlap(a->second, b->second)) continue;
      for (const HeldVertex& other : b->second.vertices) {
        if (graph.vertex(other.vertex).divisible) continue;
        const auto same = held.find(other.vertex);
        RC_ASSERT(same == held.end() || (!same->second && !other.exclusive));
      }
    }
  }
}

RC_GTEST_PROP(GeneralEngineProperty, NothingIsHeldTwice, ()) {
  const auto engine = Make(*AnyNodes(), AnyPolicy());
  std::map<JobNumber, Holding> jobs;
  for (const Step& step : AnySteps()) {
    const MatchAnswer answer = Play(*engine, step);
    if (step.cancel) jobs.erase(step.job);
    if (!answer.holding.vertices.empty()) jobs[step.job] = answer.holding;
    CheckHeldOnce(engine->graph(), jobs);
  }
}

RC_GTEST_PROP(GeneralEngineProperty, TheSameCallsGiveTheSameAnswers, ()) {
  const auto nodes = *AnyNodes();
  const std::string policy = AnyPolicy();
  const auto a = Make(nodes, policy);
  const auto b = Make(nodes, policy);
  for (const Step& step : AnySteps()) {
    const MatchAnswer first = Play(*a, step);
    const MatchAnswer second = Play(*b, step);
    RC_ASSERT(first.status == second.status);
    RC_ASSERT(first.holding == second.holding);
  }
  RC_ASSERT(a->Fingerprint() == b->Fingerprint());
}

RC_GTEST_PROP(GeneralEngineProperty, CancelUndoesMatch, ()) {
  const auto engine = Make(*AnyNodes(), AnyPolicy());
  const uint64_t empty = engine->Fingerprint();
  std::vector<JobNumber> jobs;
  std::vector<uint64_t> before;
  for (Step step : AnySteps()) {
    if (step.cancel) continue;
    before.push_back(engine->Fingerprint());
    jobs.push_back(step.job);
    Play(*engine, step);
  }
  for (size_t i = jobs.size(); i-- > 0;) {
    engine->Cancel(jobs[i]);
    RC_ASSERT(engine->Fingerprint() == before[i]);
  }
  RC_ASSERT(engine->Fingerprint() == empty);
}

RC_GTEST_PROP(GeneralEngineProperty, RollbackTakesABatchBack, ()) {
  const auto nodes = *AnyNodes();
  const std::string policy = AnyPolicy();
  const auto engine = Make(nodes, policy);
  engine->SetWorkload(AnyWorkload());
  for (const Step& step : AnySteps()) Play(*engine, step);
  const auto before = engine->Snapshot();
  const uint64_t state = engine->StateFingerprint();
  RC_ASSERT(before->StateFingerprint() == state);

  engine->Checkpoint();
  for (Step step : AnySteps()) {
    if (!step.cancel) step.job += 1000;
    Play(*engine, step);
  }
  if (*rc::gen::arbitrary<bool>()) {
    RC_ASSERT(engine->SetUp("/cluster0/rack0/node0", false).ok());
    RC_ASSERT(engine->SetProperty("/cluster0/rack0", "key", "value").ok());
    RC_ASSERT(engine->SetProperty("/cluster0/rack0/node0", "model", "a").ok());
  }
  if (*rc::gen::arbitrary<bool>()) engine->SetWorkload(AnyWorkload());
  if (*rc::gen::arbitrary<bool>()) {
    RC_ASSERT(engine->RemoveSubgraph("/cluster0/rack0/node0").ok());
    RC_ASSERT(engine->AddSubgraph(MakeCluster(nodes)).ok());
  }
  engine->Rollback();
  RC_ASSERT(engine->StateFingerprint() == state);
  // And it answers as if nothing had been.
  for (int i = 0; i < 3; ++i) {
    const Step step{
        false, JobNumber(5000 + i), MatchOperation::kAllocateOrElseReserve, AnyJobspec()};
    RC_ASSERT(Play(*engine, step).holding == Play(*before, step).holding);
  }
}

// An engine that remembers visits answers as one that sees each request for the first time.
RC_GTEST_PROP(GeneralEngineProperty, WhatIsRememberedChangesNoAnswer, ()) {
  const auto nodes = *AnyNodes();
  const std::string policy = AnyPolicy();
  const auto engine = Make(nodes, policy);
  std::vector<std::string> jobspecs(3);
  for (std::string& jobspec : jobspecs) jobspec = AnyJobspec();
  for (Step step : AnySteps()) {
    step.jobspec = *rc::gen::elementOf(jobspecs);
    const auto fresh = engine->Snapshot();  // remembers nothing
    const MatchAnswer known = Play(*engine, step);
    const MatchAnswer first = Play(*fresh, step);
    RC_ASSERT(known.status == first.status);
    RC_ASSERT(known.holding == first.holding);
    if (*rc::gen::inRange(0, 5) == 0) {
      const bool up = *rc::gen::arbitrary<bool>();
      RC_ASSERT(engine->SetUp("/cluster0/rack0/node0/core0", up).ok());
    }
  }
}

void SetWorkload(GeneralEngine& indexed, GeneralEngine& walking) {
  const Workload workload = AnyWorkload();
  for (const WorkloadShape& shape : workload) {
    RC_LOG() << "expected: " << shape.count << " times " << shape.constraint.ToString();
    for (const auto& [resource, amount] : shape.amounts) RC_LOG() << " " << resource << amount;
    RC_LOG() << "\n";
  }
  indexed.SetWorkload(workload);
  walking.SetWorkload(workload);
}

// The search by indexes answers as a walk does.
void CheckThatTheIndexChangesNoAnswer(const std::string& policy,
                                      const std::vector<NodeShape>& nodes,
                                      bool of_gpus) {
  const auto engine = Make(nodes, policy);
  const auto walking = Make(nodes, policy, /*indexes=*/false);
  RC_LOG() << "policy " << policy << "\n";
  SetWorkload(*engine, *walking);
  std::vector<std::string> jobspecs(4);
  for (std::string& jobspec : jobspecs) jobspec = AnyJobspec(of_gpus);
  for (Step step : AnySteps()) {
    if (!step.cancel) step.jobspec = *rc::gen::elementOf(jobspecs);
    const MatchAnswer indexed = Play(*engine, step);
    const MatchAnswer walked = Play(*walking, step);
    RC_ASSERT(indexed.status == walked.status);
    RC_ASSERT(indexed.holding == walked.holding);
    RC_ASSERT(engine->StateFingerprint() == walking->StateFingerprint());
    if (*rc::gen::inRange(0, 16) == 0) SetWorkload(*engine, *walking);
    if (*rc::gen::inRange(0, 4) != 0) continue;
    const bool up = *rc::gen::arbitrary<bool>();
    const std::string path =
        *rc::gen::element<std::string>("", "/rack0", "/rack0/node0", "/rack0/node0/core0");
    const std::string model = *rc::gen::element<std::string>("a", "b");
    for (GeneralEngine* one : {engine.get(), walking.get()}) {
      RC_ASSERT(one->SetUp("/cluster0" + path, up).ok());
      RC_ASSERT(one->SetProperty("/cluster0/rack0/node0", "model", model).ok());
    }
  }
}

// By definition: each point in turn.
MatchAnswer ReserveNaively(GeneralEngine& engine,
                           JobNumber job,
                           const JobRequest& request,
                           const GeneralEngine::When& after,
                           int64_t before) {
  for (auto time = engine.PointAfter(after.now_s); time.has_value() && *time < before;
       time = engine.PointAfter(*time)) {
    const auto answer = engine.Reserve(job, request, {*time, after.duration_s});
    RC_ASSERT(answer.ok());
    if (answer->status == MatchStatus::kReserved) return *answer;
  }
  return {};
}

// Nobody holds anything beyond its end, and what was reserved did not begin.
void CancelWhatIsOver(GeneralEngine& engine, int64_t now_s, JobNumber jobs) {
  for (JobNumber job = 1; job < jobs; ++job) {
    const Holding* holding = engine.Find(job);
    if (holding == nullptr) continue;
    const int64_t end = holding->at_s + holding->duration_s;
    if (end <= now_s || (holding->reserved && holding->at_s <= now_s)) engine.Cancel(job);
  }
}

// The node itself, whatever is held below it: then nothing is given out there.
void HoldNode(GeneralEngine& engine, JobNumber job, int64_t from_s, int64_t duration_s) {
  Holding holding;
  holding.at_s = from_s;
  holding.duration_s = duration_s;
  holding.reserved = true;
  for (auto v = engine.graph().FindPath("/cluster0/rack0/node0"); v.has_value();) {
    const bool is_node = holding.vertices.empty();
    const auto& in = engine.graph().vertex(*v).in;
    const EdgeId edge = in.empty() ? kNoEdge : in.front();
    holding.vertices.push_back({*v, edge, 1, is_node});
    v = in.empty() ? std::nullopt : std::optional(engine.graph().edge(edge).source);
  }
  RC_ASSERT(engine.Restore(job, holding).ok());
}

// At most three.
std::vector<JobRequest> AnyThatCouldRun(GeneralEngine& engine) {
  std::vector<JobRequest> requests;
  for (int tries = 0; requests.size() < 3 && tries < 30; ++tries) {
    const JobRequest request = *ParseJobRequest(AnyJobspec());
    const auto ever = engine.Match(MatchOperation::kSatisfiability, 0, request);
    if (ever->status == MatchStatus::kMatched) requests.push_back(request);
  }
  return requests;
}

// A sweep with all that it passes over and remembers finds what a walk at each point finds.
RC_GTEST_PROP(GeneralEngineProperty, ASweepFindsWhatEachPointSays, ()) {
  const auto nodes = *AnyNodes();
  const std::string policy = AnyPolicy();
  const auto engine = Make(nodes, policy);
  const auto walking = Make(nodes, policy, /*indexes=*/false);
  SetWorkload(*engine, *walking);
  const std::vector<JobRequest> requests = AnyThatCouldRun(*engine);
  if (requests.empty()) return;
  GeneralEngine::When now;
  bool any_reserved = false;
  for (JobNumber job = 1; job <= 40; ++job) {
    const JobRequest& request = *rc::gen::elementOf(requests);
    now.duration_s = *rc::gen::inRange<int64_t>(0, 30);
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
        now.now_s += *rc::gen::inRange(0, 10);
        CancelWhatIsOver(*engine, now.now_s, job);
        CancelWhatIsOver(*walking, now.now_s, job);
        break;
      case 1: {
        const auto gone = *rc::gen::inRange<JobNumber>(1, job + 1);
        RC_ASSERT(engine->Cancel(gone) == walking->Cancel(gone));
        break;
      }
      case 2: {
        const auto path = *rc::gen::element<std::string>("/rack0", "/rack0/node0");
        const bool up = *rc::gen::arbitrary<bool>();
        RC_ASSERT(engine->SetUp("/cluster0" + path, up).ok());
        RC_ASSERT(walking->SetUp("/cluster0" + path, up).ok());
        break;
      }
      case 3:
      case 4:
      case 5: {
        const auto answer = engine->Match(MatchOperation::kAllocate, job, request, now);
        const auto expected = walking->Match(MatchOperation::kAllocate, job, request, now);
        RC_ASSERT(answer->status == expected->status);
        RC_ASSERT(answer->holding == expected->holding);
        break;
      }
      case 6: {
        const int64_t from_s = now.now_s + *rc::gen::inRange(0, 30);
        const int64_t duration_s = *rc::gen::inRange(1, 30);
        HoldNode(*engine, job, from_s, duration_s);
        HoldNode(*walking, job, from_s, duration_s);
        break;
      }
      default: {
        const int64_t before = *rc::gen::inRange(0, 3) == 0 ? now.now_s + 20 : kForever;
        const MatchAnswer expected = ReserveNaively(*walking, job, request, now, before);
        const bool found = expected.status == MatchStatus::kReserved;
        any_reserved = any_reserved || found;
        if (*rc::gen::arbitrary<bool>()) {
          const auto time = engine->FirstTime(request, now, before);
          RC_ASSERT(time == (found ? std::optional(expected.holding.at_s) : std::nullopt));
        }
        const auto answer = engine->ReserveFirst(job, request, now, before);
        RC_ASSERT(answer->status == expected.status);
        RC_ASSERT(answer->holding == expected.holding);
      }
    }
    RC_ASSERT(engine->StateFingerprint() == walking->StateFingerprint());
  }
  RC_CLASSIFY(any_reserved, "reserved");
}

// Which of equals are taken depends on how many there are: in a walk as in a search.
RC_GTEST_PROP(GeneralEngineProperty, ASearchTakesTheSameOfEquals, ()) {
  const auto policy = *rc::gen::element<std::string>("locality", "variation");
  const std::vector<NodeShape> nodes(
      static_cast<size_t>(*rc::gen::inRange(17, 90)),
      {.cores = *rc::gen::inRange(1, 40), .gpus = *rc::gen::inRange(0, 3)});
  const auto engine = Make(nodes, policy);
  const auto walking = Make(nodes, policy, /*indexes=*/false);
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (*rc::gen::inRange(0, 6) != 0) continue;
    const std::string node = "/cluster0/rack" + std::to_string(n / 2) + "/node" + std::to_string(n);
    const std::string path = node + (*rc::gen::arbitrary<bool>() ? "/core0" : "");
    const std::string value = std::to_string(*rc::gen::inRange(0, 4));
    for (const auto& one : {engine.get(), walking.get()}) {
      RC_ASSERT(one->SetProperty(path, "perf_class", value).ok());
    }
  }
  for (const Step& step : AnySteps()) {
    const MatchAnswer expected = Play(*walking, step);
    const MatchAnswer answer = Play(*engine, step);
    RC_ASSERT(answer.status == expected.status);
    RC_ASSERT(answer.holding == expected.holding);
  }
}

RC_GTEST_PROP(GeneralEngineProperty, TheIndexChangesNoAnswer, ()) {
  CheckThatTheIndexChangesNoAnswer(AnyPolicy(), *AnyNodes(), false);
}

RC_GTEST_PROP(GeneralEngineProperty, TheIndexChangesNoAnswerOfPacked, ()) {
  std::vector<NodeShape> nodes = *AnyNodes();
  const bool of_gpus = *rc::gen::arbitrary<bool>();
  for (NodeShape& node : nodes) {
    if (!of_gpus) break;
    node.millicores = *rc::gen::element<int64_t>(2500, 4000);
    node.shares.assign(*rc::gen::inRange<size_t>(1, 5), kWholeDevice);
  }
  CheckThatTheIndexChangesNoAnswer("packed", nodes, of_gpus);
}

// A node that leaves with what is held on it, and comes back, leaves nothing behind.
RC_GTEST_PROP(GeneralEngineProperty, ANodeMayLeaveAndComeBack, ()) {
  const auto nodes = *AnyNodes();
  // Policies that remember nothing of past jobs.
  const auto policy = *rc::gen::element<std::string>("low", "high", "lonode", "hinodex");
  const auto engine = Make(nodes, policy);
  const auto untouched = Make(nodes, policy);
  for (const Step& step : AnySteps()) Play(*engine, step);
  const auto node = *rc::gen::inRange<size_t>(0, nodes.size());
  const std::string path =
      "/cluster0/rack" + std::to_string(node / 2) + "/node" + std::to_string(node);
  RC_ASSERT(engine->RemoveSubgraph(path).ok());
  RC_ASSERT(engine->AddSubgraph(MakeCluster(nodes)).ok());
  for (JobNumber job = 1; job <= 30; ++job) engine->Cancel(job);
  for (int i = 0; i < 5; ++i) {
    const std::string jobspec = AnyJobspec();
    const Step step{false, 100, MatchOperation::kAllocateWithSatisfiability, jobspec};
    const MatchStatus status = Play(*engine, step).status;
    RC_ASSERT(status == Play(*untouched, step).status);
    engine->Cancel(100);
    untouched->Cancel(100);
  }
}

// What a job is answered with `allocate_orelse_reserve`, it is answered at that time when nothing
// but what still runs then is held; and at no earlier time does it fit.
RC_GTEST_PROP(GeneralEngineProperty, NoReservationIsLaterThanASimpleSearchSays, ()) {
  const auto nodes = *AnyNodes();
  const auto engine = Make(nodes, "low");
  std::map<JobNumber, Holding> jobs;
  JobNumber next = 1;
  // Every core is taken, each until a time of its own; some are free again.
  while (true) {
    const std::string core =
        "version: 1\nresources: [{type: slot, label: a, count: 1, with: [{type: core, count: 1}]}]"
        "\ntasks: []\nattributes: {system: {duration: " +
        std::to_string(*rc::gen::inRange(1, 30)) + "}}";
    const MatchAnswer answer = Play(*engine, {false, next, MatchOperation::kAllocate, core});
    if (answer.holding.vertices.empty()) break;
    jobs[next++] = answer.holding;
  }
  for (JobNumber job = 1; job < next; ++job) {
    if (*rc::gen::inRange(0, 4) == 0) jobs.erase(job);
    if (!jobs.contains(job)) engine->Cancel(job);
  }
  std::string jobspec = AnyJobspec();
  // One that fits, but not now.
  for (int i = 0; i < 20; ++i) {
    const Step now{false, next, MatchOperation::kAllocateWithSatisfiability, jobspec};
    if (Play(*engine->Snapshot(), now).status == MatchStatus::kBusy) break;
    jobspec = AnyJobspec();
  }
  const MatchAnswer answer =
      Play(*engine, {false, next, MatchOperation::kAllocateOrElseReserve, jobspec});
  RC_CLASSIFY(answer.status == MatchStatus::kReserved, "reserved");
  if (answer.status != MatchStatus::kReserved) return;
  // The jobs all begin at 0, so what is held only ever becomes less: it is enough to let all that
  // have ended by a time go, and to ask for now.
  for (int64_t time = 0; time <= answer.holding.at_s; ++time) {
    const auto later = Make(nodes, "low");
    for (const auto& [job, holding] : jobs) {
      if (holding.duration_s > time) RC_ASSERT(later->Restore(job, holding).ok());
    }
    const MatchAnswer now = Play(*later, {false, next, MatchOperation::kAllocate, jobspec});
    RC_ASSERT((now.status == MatchStatus::kAllocated) == (time == answer.holding.at_s));
  }
}

}  // namespace
}  // namespace fluxqueue::graph
