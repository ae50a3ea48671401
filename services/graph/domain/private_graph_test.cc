#include "services/graph/domain/private_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "google/rpc/error_details.pb.h"

#include "libs/base/status_macros.h"
#include "libs/graph/jgf.h"
#include "libs/rpc/error_details.h"
#include "services/graph/domain/test_graphs.h"

namespace fluxqueue::graph_service {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Event = v1::WatchAllocationsResponse;

// The field that google.rpc.BadRequest names.
std::string FieldOf(const absl::Status& status) {
  google::rpc::BadRequest bad;
  const google::rpc::Status details = rpc::DetailsOf(status);
  for (const auto& detail : details.details()) {
    if (detail.UnpackTo(&bad)) return bad.field_violations(0).field();
  }
  return "none";
}

class PrivateGraphTest : public testing::Test {
 protected:
  PrivateGraphTest() {
    v1::CreateGraphRequest request;
    request.set_graph(TestGraph());
    request.set_policy("low");
    auto graph = PrivateGraph::Make(request, 1'000'000);
    EXPECT_TRUE(graph.ok()) << graph.status();
    graph_ = *std::move(graph);
  }

  static v1::MatchRequest Request(int nodes, int cores) {
    v1::MatchRequest request;
    request.set_jobspec(TestJobspec(nodes, cores));
    request.set_nodes(true);
    return request;
  }
  v1::MatchResponse Match(const v1::MatchRequest& request) {
    v1::MatchResponse response;
    const absl::Status status = graph_->Match(request, &response);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(graph_->GiveReason(request, &response).ok());
    return response;
  }
  absl::Status Release(int64_t job, const std::string& resources = "") {
    v1::ReleaseRequest request;
    request.set_job(job);
    request.set_resources(resources);
    v1::ReleaseResponse response;
    const absl::Status status = graph_->Release(request, &response);
    all_ = response.all();
    return status;
  }
  absl::StatusOr<v1::GetJobResponse> GetJob(int64_t job) const {
    v1::GetJobRequest request;
    request.set_job(job);
    request.set_nodes(true);
    v1::GetJobResponse response;
    RETURN_IF_ERROR(graph_->GetJob(request, &response));
    return response;
  }

  std::unique_ptr<PrivateGraph> graph_;
  bool all_ = false;
};

TEST_F(PrivateGraphTest, AJobIsMatchedAndGivenBack) {
  v1::MatchRequest request = Request(2, 3);
  request.set_format(v1::FORMAT_RV1_NOSCHED);
  const v1::MatchResponse response = Match(request);
  EXPECT_EQ(response.outcome(), v1::OUTCOME_ALLOCATED);
  EXPECT_EQ(response.job(), 1);
  EXPECT_EQ(response.allocation().at_s(), 0);
  EXPECT_EQ(response.allocation().duration_s(), 3600);
  const json resources = json::parse(response.allocation().resources());
  EXPECT_EQ(resources["execution"]["R_lite"][0]["rank"], "0-1");
  EXPECT_EQ(resources["execution"]["nodelist"][0], "node[0-1]");
  ASSERT_EQ(response.allocation().nodes_size(), 2);
  EXPECT_EQ(response.allocation().nodes(0).node(), "node0");
  EXPECT_EQ(response.allocation().nodes(0).amounts().at("core"), 3);

  auto job = GetJob(1);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_ALLOCATED);
  EXPECT_EQ(job->allocation().nodes_size(), 2);

  ASSERT_TRUE(Release(1).ok());
  EXPECT_TRUE(all_);
  job = GetJob(1);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state(), v1::JOB_STATE_RELEASED);
  EXPECT_FALSE(job->has_allocation());
  EXPECT_TRUE(absl::IsNotFound(Release(1)));
  EXPECT_TRUE(absl::IsNotFound(GetJob(2).status()));
}

TEST_F(PrivateGraphTest, WithoutAFormatNothingIsWritten) {
  v1::MatchRequest request = Request(1, 1);
  request.set_nodes(false);
  const v1::MatchResponse response = Match(request);
  EXPECT_EQ(response.allocation().resources(), "");
  EXPECT_EQ(response.allocation().nodes_size(), 0);
  EXPECT_EQ(response.allocation().duration_s(), 3600);
}

TEST_F(PrivateGraphTest, EveryFormatIsWritten) {
  for (const auto format : {v1::FORMAT_RV1,
                            v1::FORMAT_RV1_NOSCHED,
                            v1::FORMAT_RLITE,
                            v1::FORMAT_JGF,
                            v1::FORMAT_SIMPLE}) {
    v1::MatchRequest request = Request(1, 1);
    request.set_format(format);
    const std::string resources = Match(request).allocation().resources();
    const bool has_graph = resources.find("\"graph\"") != std::string::npos;
    EXPECT_EQ(has_graph, format == v1::FORMAT_RV1 || format == v1::FORMAT_JGF) << resources;
    EXPECT_EQ(json::accept(resources), format != v1::FORMAT_SIMPLE) << resources;
  }
}

TEST_F(PrivateGraphTest, ARefusalIsAnAnswerWithItsReason) {
  ASSERT_EQ(Match(Request(4, 4)).outcome(), v1::OUTCOME_ALLOCATED);
  v1::MatchRequest request = Request(1, 1);
  request.set_operation(v1::OPERATION_ALLOCATE_WITH_SATISFIABILITY);
  v1::MatchResponse response = Match(request);
  EXPECT_EQ(response.outcome(), v1::OUTCOME_BUSY);
  EXPECT_EQ(response.reason(), "");
  EXPECT_EQ(response.job(), 0);
  EXPECT_FALSE(response.has_allocation());
  request.set_explain(true);
  EXPECT_THAT(Match(request).reason(), HasSubstr("core"));
  request.set_jobspec(TestJobspec(5, 1));
  response = Match(request);
  EXPECT_EQ(response.outcome(), v1::OUTCOME_UNSATISFIABLE);
  EXPECT_THAT(response.reason(), HasSubstr("node"));
}

TEST_F(PrivateGraphTest, EveryOperationIsAnswered) {
  ASSERT_EQ(Match(Request(4, 4)).outcome(), v1::OUTCOME_ALLOCATED);
  const std::vector<std::pair<v1::Operation, v1::Outcome>> wanted = {
      {v1::OPERATION_UNSPECIFIED, v1::OUTCOME_BUSY},
      {v1::OPERATION_ALLOCATE, v1::OUTCOME_BUSY},
      {v1::OPERATION_SATISFIABILITY, v1::OUTCOME_SATISFIABLE},
      {v1::OPERATION_WITHOUT_ALLOCATING, v1::OUTCOME_BUSY},
      {v1::OPERATION_WITHOUT_ALLOCATING_FUTURE, v1::OUTCOME_FITS},
      {v1::OPERATION_ALLOCATE_ORELSE_RESERVE, v1::OUTCOME_RESERVED}};
  for (const auto& [operation, outcome] : wanted) {
    v1::MatchRequest request = Request(1, 1);
    request.set_operation(operation);
    const v1::MatchResponse response = Match(request);
    EXPECT_EQ(response.outcome(), outcome) << v1::Operation_Name(operation);
    EXPECT_EQ(response.allocation().at_s(),
              outcome == v1::OUTCOME_FITS || outcome == v1::OUTCOME_RESERVED ? 3600 : 0);
    EXPECT_EQ(response.job() != 0, outcome == v1::OUTCOME_RESERVED);
  }
  const auto reserved = GetJob(7);
  ASSERT_TRUE(reserved.ok()) << reserved.status();
  EXPECT_EQ(reserved->state(), v1::JOB_STATE_RESERVED);
}

TEST_F(PrivateGraphTest, AClientMayNumberItsJobs) {
  v1::MatchRequest request = Request(1, 1);
  request.set_job(1000);
  EXPECT_EQ(Match(request).job(), 1000);
  v1::MatchResponse response;
  EXPECT_TRUE(absl::IsAlreadyExists(graph_->Match(request, &response)));
  EXPECT_EQ(Match(Request(1, 1)).job(), 1);
}

TEST_F(PrivateGraphTest, PartsAreGivenBack) {
  v1::MatchRequest request = Request(2, 4);
  request.set_format(v1::FORMAT_RV1_NOSCHED);
  ASSERT_EQ(Match(request).job(), 1);
  const char* part = R"({"version": 1, "execution": {"R_lite": [
      {"rank": "0", "children": {"core": "0-3"}}], "starttime": 0, "expiration": 60}})";
  ASSERT_TRUE(Release(1, part).ok());
  EXPECT_FALSE(all_);
  const auto job = GetJob(1);
  ASSERT_TRUE(job.ok());
  ASSERT_EQ(job->allocation().nodes_size(), 1);
  EXPECT_EQ(job->allocation().nodes(0).node(), "node1");
  const absl::Status status = Release(1, "no R");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(FieldOf(status), "resources");
}

TEST_F(PrivateGraphTest, ErrorsNameTheirField) {
  v1::MatchResponse response;
  v1::MatchRequest request = Request(1, 1);
  request.set_jobspec("version: 1");
  EXPECT_EQ(FieldOf(graph_->Match(request, &response)), "jobspec");
  request = Request(1, 1);
  request.set_operation(static_cast<v1::Operation>(77));
  EXPECT_EQ(FieldOf(graph_->Match(request, &response)), "operation");
  request = Request(1, 1);
  request.set_format(static_cast<v1::Format>(77));
  EXPECT_EQ(FieldOf(graph_->Match(request, &response)), "format");
  request = Request(1, 1);
  request.set_job(-3);
  EXPECT_EQ(FieldOf(graph_->Match(request, &response)), "job");
  request = Request(1, 1);
  request.set_job_id("a");
  EXPECT_EQ(FieldOf(graph_->Match(request, &response)), "job_id");
  EXPECT_EQ(FieldOf(Release(0)), "job");

  v1::CreateGraphRequest create;
  create.set_graph("{}");
  EXPECT_EQ(FieldOf(PrivateGraph::Make(create, 1000).status()), "graph");
  create.set_graph(TestGraph());
  create.set_policy("lowest");
  EXPECT_EQ(FieldOf(PrivateGraph::Make(create, 1000).status()), "policy");
  create.set_policy("low");
  create.set_prune_filters("core");
  EXPECT_EQ(FieldOf(PrivateGraph::Make(create, 1000).status()), "prune_filters");
}

TEST_F(PrivateGraphTest, ItIsExplainedWhatIsMissingAndWhoHasIt) {
  ASSERT_EQ(Match(Request(4, 3)).outcome(), v1::OUTCOME_ALLOCATED);
  v1::ExplainRequest request;
  request.set_jobspec(TestJobspec(1, 2));
  v1::ExplainResponse response;
  ASSERT_TRUE(graph_->Explain(request, &response).ok());
  EXPECT_EQ(response.missing(), "core");
  EXPECT_THAT(response.sentence(), HasSubstr("core"));
  ASSERT_GE(response.levels_size(), 1);
  EXPECT_EQ(response.levels(0).type(), "node");
  EXPECT_EQ(response.levels(0).there(), 4U);
  ASSERT_EQ(response.holders_size(), 1);
  EXPECT_EQ(response.holders(0).job(), 1);
  EXPECT_EQ(response.holders(0).amount(), 3);
  EXPECT_EQ(response.holders(0).until_s(), 3600);
}

TEST_F(PrivateGraphTest, ResourcesAreFound) {
  v1::FindRequest request;
  request.set_criteria("property=ssd");
  request.set_format(v1::FORMAT_SIMPLE);
  v1::FindResponse response;
  ASSERT_TRUE(graph_->Find(request, &response).ok());
  // Two nodes, their racks, the cluster.
  EXPECT_EQ(response.vertices(), 5);
  EXPECT_THAT(response.resources(), HasSubstr("node3"));
  request.set_criteria("names=nobody");
  response.Clear();
  ASSERT_TRUE(graph_->Find(request, &response).ok());
  EXPECT_EQ(response.vertices(), 0);
  EXPECT_EQ(response.resources(), "");
  request.set_criteria("colour=red");
  EXPECT_EQ(FieldOf(graph_->Find(request, &response)), "criteria");
}

TEST_F(PrivateGraphTest, TrialsHoldNothing) {
  ASSERT_EQ(Match(Request(4, 4)).outcome(), v1::OUTCOME_ALLOCATED);
  v1::WhatIfRequest request;
  request.set_nodes(true);
  PrivateGraph::Trials trials = graph_->BeginTrials();
  v1::WhatIfResponse response;
  ASSERT_TRUE(trials.Try(request, TestJobspec(4, 4, 100), response.add_trials()).ok());
  ASSERT_TRUE(trials.Try(request, TestJobspec(4, 4, 100), response.add_trials()).ok());
  ASSERT_TRUE(trials.Try(request, TestJobspec(5, 1), response.add_trials()).ok());
  EXPECT_EQ(response.trials(0).outcome(), v1::OUTCOME_RESERVED);
  EXPECT_EQ(response.trials(0).allocation().at_s(), 3600);
  EXPECT_EQ(response.trials(0).allocation().nodes_size(), 4);
  EXPECT_EQ(response.trials(1).allocation().at_s(), 3700);
  EXPECT_EQ(response.trials(2).outcome(), v1::OUTCOME_UNSATISFIABLE);
  EXPECT_THAT(response.trials(2).reason(), HasSubstr("node"));
  EXPECT_TRUE(absl::IsInvalidArgument(trials.Try(request, "no", response.add_trials())));
  EXPECT_TRUE(absl::IsNotFound(GetJob(2).status()));
}

TEST_F(PrivateGraphTest, TheGraphIsSummedUpByLevel) {
  ASSERT_EQ(Match(Request(2, 3)).outcome(), v1::OUTCOME_ALLOCATED);
  v1::GetGraphResponse response;
  graph_->Summarise(&response);
  std::vector<std::string> types;
  for (const auto& level : response.levels()) types.push_back(level.type());
  EXPECT_THAT(types, ElementsAre("cluster", "rack", "node", "core", "gpu", "memory"));
  EXPECT_EQ(response.levels(2).vertices(), 4);
  EXPECT_EQ(response.levels(2).up(), 4);
  EXPECT_EQ(response.levels(3).size(), 16);
  EXPECT_EQ(response.levels(3).held(), 6);
  EXPECT_EQ(response.levels(5).size(), 4 * 8192);
  EXPECT_EQ(response.levels(5).held(), 0);
}

TEST_F(PrivateGraphTest, JobsAreGroups) {
  ASSERT_EQ(Match(Request(2, 3)).job(), 1);
  ASSERT_EQ(Match(Request(1, 1)).job(), 2);
  ASSERT_TRUE(Release(1).ok());
  ASSERT_EQ(Match(Request(3, 1)).job(), 3);
  EXPECT_EQ(graph_->GroupBehind(0)->job, 2U);
  EXPECT_EQ(graph_->GroupBehind(2)->job, 3U);
  EXPECT_EQ(graph_->GroupBehind(2)->nodes, 3);
  EXPECT_FALSE(graph_->GroupBehind(3).has_value());
  EXPECT_TRUE(absl::IsNotFound(graph_->GroupOf(1).status()));
  EXPECT_EQ(graph_->GroupOf(3)->nodes, 3);
}

TEST_F(PrivateGraphTest, OldJobsAreForgotten) {
  const v1::MatchRequest request = Request(1, 1);
  for (size_t i = 0; i <= PrivateGraph::kReleasedKept; ++i) {
    v1::MatchResponse response;
    ASSERT_TRUE(graph_->Match(request, &response).ok());
    ASSERT_TRUE(Release(response.job()).ok());
  }
  EXPECT_TRUE(absl::IsNotFound(GetJob(1).status()));
  EXPECT_TRUE(GetJob(2).ok());
  EXPECT_EQ(Match(request).job(), static_cast<int64_t>(PrivateGraph::kReleasedKept) + 2);
}

// ---- watches

class WatchTest : public PrivateGraphTest {
 protected:
  std::shared_ptr<AllocationWatch> Watch(size_t most_bytes = 10'000) {
    v1::WatchAllocationsRequest request;
    request.set_nodes(true);
    auto watch = std::make_shared<AllocationWatch>(request, most_bytes);
    EXPECT_FALSE(graph_->Watch(watch));
    return watch;
  }
  // What waits, such as "HELD 1"; the end's code at the end.
  static std::vector<std::string> TakeAll(AllocationWatch& watch) {
    std::vector<std::string> told;
    Event event;
    absl::Status end;
    while (true) {
      switch (watch.Take(&event, &end, [] {})) {
        case AllocationWatch::Taken::kEvent:
          told.push_back(fmt::format("{} {} {}",
                                     Event::Kind_Name(event.kind()),
                                     event.job(),
                                     event.allocation().nodes_size()));
          break;
        case AllocationWatch::Taken::kEnd:
          told.push_back(absl::StatusCodeToString(end.code()));
          return told;
        case AllocationWatch::Taken::kNothing:
          return told;
      }
    }
  }
};

TEST_F(WatchTest, WhatIsHeldAndWhatHappensIsTold) {
  ASSERT_EQ(Match(Request(2, 4)).job(), 1);
  ASSERT_EQ(Match(Request(1, 1)).job(), 2);
  ASSERT_TRUE(Release(2).ok());
  const auto watch = Watch();
  EXPECT_THAT(TakeAll(*watch), ElementsAre("KIND_HELD 1 2", "KIND_SYNCED 0 0"));
  ASSERT_EQ(Match(Request(2, 4)).job(), 3);
  v1::MatchRequest later = Request(4, 4);
  later.set_operation(v1::OPERATION_ALLOCATE_ORELSE_RESERVE);
  ASSERT_EQ(Match(later).job(), 4);
  ASSERT_TRUE(Release(1, R"({"version": 1, "execution": {"R_lite": [
      {"rank": "0", "children": {"core": "0-3"}}], "starttime": 0, "expiration": 60}})")
                  .ok());
  ASSERT_TRUE(Release(1).ok());
  EXPECT_THAT(
      TakeAll(*watch),
      ElementsAre(
          "KIND_ALLOCATED 3 2", "KIND_RESERVED 4 4", "KIND_REDUCED 1 1", "KIND_RELEASED 1 0"));
  graph_->EndWatches(Unavailable("gone"));
  EXPECT_THAT(TakeAll(*watch), ElementsAre("UNAVAILABLE"));
}

TEST_F(WatchTest, ASlowWatcherIsTold) {
  const auto slow = Watch(1000);
  const auto fast = Watch(1000);
  EXPECT_THAT(TakeAll(*fast), ElementsAre("KIND_SYNCED 0 0"));
  for (int i = 1; i <= 12; ++i) {
    Match(Request(1, 1));
    EXPECT_THAT(TakeAll(*fast), ElementsAre(fmt::format("KIND_ALLOCATED {} 1", i)));
  }
  EXPECT_THAT(TakeAll(*slow), ElementsAre("RESOURCE_EXHAUSTED"));
  EXPECT_TRUE(slow->ended());
}

// A list of some megabytes, while jobs come and go before and behind what has been told.
TEST_F(WatchTest, TheListComesInPieces) {
  v1::CreateGraphRequest create;
  create.set_graph(TestGraph(400));
  graph_ = *PrivateGraph::Make(create, 1'000'000);
  v1::MatchRequest match = Request(1, 1);
  match.set_nodes(false);
  constexpr int kJobs = 1500;
  for (int i = 1; i <= kJobs; ++i) {
    match.set_job(10 * i);
    v1::MatchResponse response;
    ASSERT_TRUE(graph_->Match(match, &response).ok());
  }
  v1::WatchAllocationsRequest request;
  request.set_format(v1::FORMAT_JGF);
  const auto watch = std::make_shared<AllocationWatch>(request, 2'000'000);
  EXPECT_TRUE(graph_->Watch(watch));
  size_t waiting = 0;
  watch->CountBy([&](size_t bytes) {
    waiting = bytes;
    return absl::OkStatus();
  });
  std::vector<std::string> told = TakeAll(*watch);
  ASSERT_LT(told.size(), kJobs);
  ASSERT_GT(told.size(), 20U);
  // Of what it was not told yet the list tells what has become.
  for (const int64_t job : {10, 20, 10 * kJobs - 10, 10 * kJobs}) ASSERT_TRUE(Release(job).ok());
  for (const int64_t job : {5, 10 * kJobs + 10}) {
    match.set_job(job);
    v1::MatchResponse response;
    ASSERT_TRUE(graph_->Match(match, &response).ok());
  }
  EXPECT_THAT(TakeAll(*watch),
              ElementsAre("KIND_RELEASED 10 0", "KIND_RELEASED 20 0", "KIND_ALLOCATED 5 0"));
  bool more = true;
  int pieces = 1;
  for (; more; ++pieces) {
    more = graph_->Watch(watch);
    EXPECT_LT(waiting, 2'000'000 / AllocationWatch::kPieces + 10'000);
    for (std::string& event : TakeAll(*watch)) told.push_back(std::move(event));
  }
  EXPECT_GT(pieces, 2);
  ASSERT_EQ(told.size(), kJobs - 2 + 1 + 1);
  EXPECT_EQ(told[0], "KIND_HELD 10 0");
  EXPECT_EQ(told[kJobs - 3], fmt::format("KIND_HELD {} 0", 10 * kJobs - 20));
  EXPECT_EQ(told[kJobs - 2], fmt::format("KIND_HELD {} 0", 10 * kJobs + 10));
  EXPECT_EQ(told.back(), "KIND_SYNCED 0 0");
}

TEST_F(WatchTest, WhatIsTooLargeForAnEventIsLeftOut) {
  Event event;
  event.set_kind(Event::KIND_HELD);
  event.set_job(7);
  event.mutable_allocation()->set_at_s(60);
  event.mutable_allocation()->set_resources(std::string(1000, 'x'));
  FitEvent(absl::OkStatus(), &event);
  EXPECT_FALSE(event.left_out());
  event.mutable_allocation()->set_resources(std::string(kMostEventBytes, 'x'));
  FitEvent(absl::OkStatus(), &event);
  EXPECT_TRUE(event.left_out());
  EXPECT_EQ(event.job(), 7);
  EXPECT_EQ(event.allocation().at_s(), 60);
  EXPECT_LT(event.ByteSizeLong(), 100U);
}

// ---- bounds

TEST_F(PrivateGraphTest, JobsHoldSoMuchAndNoMore) {
  v1::MatchRequest request = Request(4, 4);
  request.set_operation(v1::OPERATION_ALLOCATE_ORELSE_RESERVE);
  absl::Status status;
  int64_t jobs = 0;
  for (; status.ok() && jobs < PrivateGraph::kHeldBesides; ++jobs) {
    v1::MatchResponse response;
    status = graph_->Match(request, &response);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << jobs;
  EXPECT_THAT(Message(status), HasSubstr("release some"));
  // What holds nothing is answered all the same.
  request.set_operation(v1::OPERATION_SATISFIABILITY);
  EXPECT_EQ(Match(request).outcome(), v1::OUTCOME_SATISFIABLE);
  request.set_operation(v1::OPERATION_ALLOCATE_ORELSE_RESERVE);
  for (int64_t job = 1; job <= 2; ++job) ASSERT_TRUE(Release(job).ok());
  EXPECT_NE(Match(request).job(), 0);
}

TEST_F(PrivateGraphTest, AnAnswerNamesSoManyVertices) {
  EXPECT_TRUE(CheckWritten(kMostWritten, v1::FORMAT_JGF).ok());
  const absl::Status status = CheckWritten(kMostWritten + 1, v1::FORMAT_JGF);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("FORMAT_RLITE"));
  EXPECT_TRUE(CheckWritten(kMostWritten + 1, v1::FORMAT_RLITE).ok());
  EXPECT_TRUE(CheckWritten(kMostWritten + 1, v1::FORMAT_UNSPECIFIED).ok());
}

// 120,000 cores in some hundred bytes.
TEST(PrivateGraphMakeTest, WhatCannotBeWrittenIsNotHeld) {
  v1::CreateGraphRequest create;
  create.set_graph(R"({"version": 1, "execution": {"R_lite": [
      {"rank": "0-999", "children": {"core": "0-119"}}], "nodelist": ["n[0-999]"],
      "starttime": 0, "expiration": 0}})");
  const auto graph = PrivateGraph::Make(create, 1'000'000);
  ASSERT_TRUE(graph.ok()) << graph.status();
  v1::MatchRequest match;
  match.set_jobspec(TestJobspec(1000, 120));
  match.set_format(v1::FORMAT_JGF);
  for (int i = 0; i < 2; ++i) {
    v1::MatchResponse response;
    const absl::Status status = (*graph)->Match(match, &response);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("FORMAT_RLITE"));
  }
  match.set_format(v1::FORMAT_RLITE);
  v1::MatchResponse response;
  EXPECT_TRUE((*graph)->Match(match, &response).ok());
  EXPECT_EQ(response.outcome(), v1::OUTCOME_ALLOCATED);
}

TEST_F(PrivateGraphTest, LongCriteriaAreRefused) {
  v1::FindRequest request;
  v1::FindResponse response;
  for (int i = 0; i < 10'000; ++i) request.mutable_criteria()->append("status=up ");
  EXPECT_EQ(FieldOf(graph_->Find(request, &response)), "criteria");
}

TEST_F(WatchTest, WhoWaitsIsWokenOnce) {
  const auto watch = Watch();
  TakeAll(*watch);
  int woken = 0;
  Event event;
  absl::Status end;
  EXPECT_EQ(watch->Take(&event, &end, [&] { ++woken; }), AllocationWatch::Taken::kNothing);
  Match(Request(1, 1));
  Match(Request(1, 1));
  EXPECT_EQ(woken, 1);
}

// ---- JGF

TEST_F(PrivateGraphTest, TheGraphIsWrittenAsItCame) {
  graph::JgfWriter writer = graph_->Write();
  EXPECT_EQ(writer.Next(1 << 30), TestGraph());
}

TEST(PrivateGraphMakeTest, RIsAGraphToo) {
  v1::CreateGraphRequest request;
  request.set_graph(R"({"version": 1, "execution": {"R_lite": [
      {"rank": "0-2", "children": {"core": "0-1"}}], "nodelist": ["n[0-2]"],
      "starttime": 0, "expiration": 0}})");
  const auto graph = PrivateGraph::Make(request, 1'000'000);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->vertices(), 1 + 3 + 6);
}

}  // namespace
}  // namespace fluxqueue::graph_service
