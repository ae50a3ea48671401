// Requests that come once each, on clusters that are nearly full: a search that refuses most of
// them by a look (indexed_search_look.cc) answers as a walk does.
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "libs/graph/general_engine.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::graph {
namespace {

using synthetic::MakeCluster;
using synthetic::NodeShape;

int Any(int from, int to) {
  return *rc::gen::inRange(from, to + 1);
}

bool OneIn(int n) {
  return Any(1, n) == 1;
}

std::string Part(const std::string& type, int most) {
  return "{type: " + type + ", count: " + std::to_string(Any(1, most)) + "}";
}

JobRequest RequestOf(const std::string& resources, const std::string& constraints = "") {
  auto request =
      ParseJobRequest("version: 1\nresources: [" + resources +
                      "]\ntasks: []\nattributes: {system: {duration: 0" + constraints + "}}");
  RC_ASSERT(request.ok());
  // As what pods ask for.
  request->levels_may_be_left_out = true;
  return *std::move(request);
}

std::string Slots(int count, const std::string& parts) {
  return "{type: slot, label: a, count: " + std::to_string(count) + ", with: [" + parts + "]}";
}

JobRequest AnyRequest() {
  std::string parts = Part("core", 5);
  if (OneIn(3)) parts += ", " + Part("memory", 20);
  if (OneIn(4)) parts += ", " + Part("gpu", 3);
  if (OneIn(4)) parts = Part("cpu", 3000) + ", " + Part(std::string(kGpuMilli), 2200);
  std::string resources = Slots(Any(1, OneIn(3) ? 60 : 4), parts);
  if (OneIn(3)) {
    const std::string alone = OneIn(2) ? ", exclusive: true" : "";
    resources =
        "{type: node, count: " + std::to_string(Any(1, 5)) + alone + ", with: [" + resources + "]}";
  }
  if (OneIn(4)) {
    resources = "{type: rack, count: " + std::to_string(Any(1, 3)) + ", with: [" + resources + "]}";
  }
  JobRequest request =
      RequestOf(resources, OneIn(3) ? ", constraints: {properties: [\"fast\"]}" : "");
  if (OneIn(2)) {
    request.tolerations = {*Toleration::Parse("t", "")};
    request.shape += " tolerates t";
  }
  return request;
}

// The same cluster, searched and walked: both go the same steps.
class Twins {
 public:
  explicit Twins(const std::string& policy) {
    const std::array<NodeShape, 3> kinds = {
        {{.cores = 4, .memory = {8, 8}},
         {.cores = Any(1, 8), .gpus = 2, .memory = {8}, .millicores = 4000},
         {.cores = 2, .millicores = 2000, .shares = {1000, 1000, 1000}}}};
    for (int i = Any(1, OneIn(2) ? 20 : 200); i > 0; --i) {
      nodes_.push_back(kinds[static_cast<size_t>(Any(0, 2))]);
    }
    const auto per_rack = static_cast<size_t>(Any(1, 40));
    for (const bool indexes : {true, false}) {
      auto engine = GeneralEngine::Make(
          MakeCluster(nodes_, per_rack),
          {.policy = policy, .prune_filters = "ALL:core,ALL:gpu", .indexes = indexes});
      RC_ASSERT(engine.ok());
      (indexes ? searching_ : walking_) = *std::move(engine);
    }
    RC_LOG() << nodes_.size() << " nodes, " << per_rack << " in a rack, " << policy << "\n";
  }

  void Fill() {
    int cores = 0;
    for (const NodeShape& node : nodes_) cores += node.cores;
    for (int i = 0; i < 3; ++i) {
      const int slots = cores * Any(10, 40) / 100;
      if (slots > 0) Match(MatchOperation::kAllocate, RequestOf(Slots(slots, Part("core", 1))));
    }
  }

  void Step() {
    switch (Any(0, 12)) {
      case 0:
        now_s_ += Any(0, 10);
        return CancelWhatIsOver();
      case 1:
      case 2:
        return Cancel(static_cast<JobNumber>(Any(1, static_cast<int>(next_))));
      case 3:
        return Reserve();
      case 4:
        return Close(AnyNode());
      case 5:
        return Change(AnyNode());
      default:
        Match(*rc::gen::element(MatchOperation::kAllocate,
                                MatchOperation::kAllocateWithSatisfiability,
                                MatchOperation::kSatisfiability),
              AnyRequest());
    }
  }

 private:
  void Compare(const MatchAnswer& searched, const MatchAnswer& walked) const {
    RC_LOG() << "  " << static_cast<int>(searched.status) << "\n";
    RC_ASSERT(searched.status == walked.status);
    RC_ASSERT(searched.holding == walked.holding);
    RC_ASSERT(searching_->StateFingerprint() == walking_->StateFingerprint());
  }

  GeneralEngine::When AnyTime() const { return {now_s_, OneIn(4) ? 0 : Any(1, 30)}; }

  void Match(MatchOperation operation, const JobRequest& request) {
    const GeneralEngine::When when = AnyTime();
    const JobNumber job = next_++;
    RC_LOG() << request.shape << " at " << when.now_s << " for " << when.duration_s;
    Compare(*searching_->Match(operation, job, request, when),
            *walking_->Match(operation, job, request, when));
  }

  void Reserve() {
    const JobRequest request = AnyRequest();
    const GeneralEngine::When when = AnyTime();
    const JobNumber job = next_++;
    RC_LOG() << request.shape << " after " << when.now_s << " for " << when.duration_s;
    MatchAnswer walked;
    for (auto time = walking_->PointAfter(now_s_);
         time.has_value() && *time < kForever && walked.status != MatchStatus::kReserved;
         time = walking_->PointAfter(*time)) {
      walked = *walking_->Reserve(job, request, {*time, when.duration_s});
    }
    Compare(*searching_->ReserveFirst(job, request, when, kForever), walked);
  }

  void Cancel(JobNumber job) { RC_ASSERT(searching_->Cancel(job) == walking_->Cancel(job)); }

  // No job holds anything beyond its end, and what was reserved did not begin.
  void CancelWhatIsOver() {
    for (JobNumber job = 1; job < next_; ++job) {
      const Holding* holding = searching_->Find(job);
      if (holding == nullptr) continue;
      const int64_t end = holding->at_s + holding->duration_s;
      if (end <= now_s_ || (holding->reserved && holding->at_s <= now_s_)) Cancel(job);
    }
  }

  VertexId AnyNode() const {
    const ResourceGraph& graph = searching_->graph();
    return *rc::gen::elementOf(graph.OfType(graph.types().Find("node")));
  }

  // The node itself is held, whatever is held below it.
  void Close(VertexId node) {
    RC_LOG() << "close " << searching_->graph().PathOf(node) << "\n";
    Holding holding;
    holding.at_s = now_s_ + Any(0, 20);
    holding.duration_s = Any(1, 20);
    holding.reserved = true;
    for (VertexId v = node;;) {
      const auto& in = searching_->graph().vertex(v).in;
      const EdgeId edge = in.empty() ? kNoEdge : in.front();
      holding.vertices.push_back({v, edge, 1, v == node});
      if (in.empty()) break;
      v = searching_->graph().edge(edge).source;
    }
    RC_ASSERT(searching_->Restore(next_, holding).ok());
    RC_ASSERT(walking_->Restore(next_++, holding).ok());
  }

  void Change(VertexId node) {
    const int what = Any(0, 3);
    const bool on = OneIn(2);
    for (GeneralEngine* one : {searching_.get(), walking_.get()}) {
      const VertexId rack = one->graph().ParentsOf(node).front();
      if (what == 0) one->SetUp(node, on);
      if (what == 1) one->SetUp(rack, on);
      if (what == 2) one->SetProperties(node, on ? Labels{{"fast", ""}} : Labels());
      if (what == 3)
        one->SetTaints(node,
                       on ? std::vector<Taint>{{"t", "", "NoSchedule"}} : std::vector<Taint>());
    }
  }

  std::vector<NodeShape> nodes_;
  std::unique_ptr<GeneralEngine> searching_;
  std::unique_ptr<GeneralEngine> walking_;
  JobNumber next_ = 1;
  int64_t now_s_ = 0;
};

// It is told no change.
TEST(IndexedSearchLook, SeesWhatHasEndedMeanwhile) {
  auto engine = GeneralEngine::Make(MakeCluster({{.cores = 1}, {.cores = 1}}), {});
  ASSERT_TRUE(engine.ok());
  ASSERT_TRUE((*engine)->SetUp("/cluster0/rack0/node1", false).ok());
  const JobRequest one = RequestOf(Slots(1, "{type: core, count: 1}"));
  const JobRequest another =
      RequestOf("{type: node, count: 1, with: [" + Slots(1, "{type: core, count: 1}") + "]}");
  EXPECT_EQ((*engine)->Reserve(1, one, {5, 5})->status, MatchStatus::kReserved);
  const auto now = MatchOperation::kAllocate;
  EXPECT_EQ((*engine)->Match(now, 2, one, {7, 1})->status, MatchStatus::kBusy);
  EXPECT_EQ((*engine)->Match(now, 2, another, {10, 1})->status, MatchStatus::kAllocated);
}

void CheckThatALookChangesNoAnswer(const std::string& policy) {
  Twins twins(policy);
  twins.Fill();
  for (int i = 0; i < 40; ++i) twins.Step();
}

RC_GTEST_PROP(IndexedSearchLook, ChangesNoAnswer, ()) {
  CheckThatALookChangesNoAnswer(*rc::gen::element<std::string>(
      "first", "firstnodex", "low", "high", "hinode", "lonodex", "locality", "variation"));
}

RC_GTEST_PROP(IndexedSearchLook, ChangesNoAnswerOfPacked, ()) {
  CheckThatALookChangesNoAnswer("packed");
}

}  // namespace
}  // namespace fluxqueue::graph
