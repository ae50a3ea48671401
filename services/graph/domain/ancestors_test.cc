#include "services/graph/domain/ancestors.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "services/graph/domain/private_graph.h"
#include "services/graph/domain/test_graphs.h"

namespace fluxqueue::graph_service {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(FluxionTest, InitIsAnsweredByItsEnum) {
  ::fluxion::InitRequest request;
  request.set_policy("low");
  request.set_jgf("{}");
  EXPECT_EQ(ToCreateGraph(request).graph(), "{}");
  EXPECT_EQ(ToCreateGraph(request).policy(), "low");
  std::string reason;
  EXPECT_EQ(ToInitResponse(absl::OkStatus(), &reason).status(), 0);
  EXPECT_EQ(reason, "");
  EXPECT_EQ(ToInitResponse(InvalidArgument("bad"), &reason).status(), 1);
  EXPECT_EQ(reason, "bad");
  const auto full = MakeStatus(absl::StatusCode::kResourceExhausted, "full");
  EXPECT_EQ(ToInitResponse(full, &reason).status(), 2);
  EXPECT_EQ(reason, "full");
}

TEST(FluxionTest, RequestsNameTheirOperation) {
  ::fluxion::MatchRequest request;
  request.set_jobspec("spec");
  EXPECT_EQ(ToMatch(request)->operation(), v1::OPERATION_ALLOCATE);
  EXPECT_EQ(ToMatch(request)->jobspec(), "spec");
  EXPECT_EQ(ToMatch(request)->format(), v1::FORMAT_JGF);
  request.set_request("satisfiability");
  EXPECT_EQ(ToMatch(request)->operation(), v1::OPERATION_SATISFIABILITY);
  request.set_request("allocate_orelse_reserve");
  EXPECT_EQ(ToMatch(request)->operation(), v1::OPERATION_ALLOCATE_ORELSE_RESERVE);
  request.set_request("without_allocating_future");
  EXPECT_EQ(ToMatch(request)->operation(), v1::OPERATION_WITHOUT_ALLOCATING_FUTURE);
  request.set_request("allocate");
  request.set_reservation(true);
  EXPECT_EQ(ToMatch(request)->operation(), v1::OPERATION_ALLOCATE_ORELSE_RESERVE);
  request.set_request("take");
  EXPECT_TRUE(absl::IsInvalidArgument(ToMatch(request).status()));
}

TEST(FluxionTest, AnswersAreTranslated) {
  v1::MatchResponse response;
  response.set_outcome(v1::OUTCOME_RESERVED);
  response.set_job(7);
  response.mutable_allocation()->set_at_s(60);
  response.mutable_allocation()->set_resources("{}");
  response.mutable_overhead()->set_nanos(500'000'000);
  std::string reason;
  const ::fluxion::MatchResponse reserved = ToFluxionResponse(absl::OkStatus(), &response, &reason);
  EXPECT_EQ(reserved.status(), ::fluxion::MatchResponse::MATCH_SUCCESS);
  EXPECT_TRUE(reserved.reserved());
  EXPECT_EQ(reserved.jobid(), 7);
  EXPECT_EQ(reserved.at(), 60);
  EXPECT_EQ(reserved.allocation(), "{}");
  EXPECT_FLOAT_EQ(reserved.overhead(), 0.5F);
  EXPECT_EQ(reason, "");

  response.Clear();
  response.set_outcome(v1::OUTCOME_UNSATISFIABLE);
  response.set_reason("too much");
  const ::fluxion::MatchResponse denied = ToFluxionResponse(absl::OkStatus(), &response, &reason);
  EXPECT_EQ(denied.status(), ::fluxion::MatchResponse::MATCH_DENIED);
  EXPECT_EQ(denied.allocation(), "");
  EXPECT_EQ(reason, "too much");

  response.Clear();
  EXPECT_EQ(ToFluxionResponse(InvalidArgument("bad"), &response, &reason).status(),
            ::fluxion::MatchResponse::MATCH_ERROR);
  EXPECT_EQ(reason, "bad");
}

TEST(FluxionTest, CancelHasItsErrno) {
  std::string reason;
  const auto cancel = [&reason](const absl::Status& status) {
    const ::fluxion::CancelResponse response = ToFluxionCancel(5, status, &reason);
    EXPECT_EQ(response.jobid(), 5);
    EXPECT_EQ(response.error(), ToFluxcliCancel(5, status, &reason).error());
    return std::pair<int, int>(response.status(), response.error());
  };
  EXPECT_EQ(cancel(absl::OkStatus()), std::pair(0, 0));
  EXPECT_EQ(cancel(InvalidArgument("x")), std::pair(1, EINVAL));
  EXPECT_EQ(cancel(MakeStatus(absl::StatusCode::kNotFound, "x")), std::pair(2, ENOENT));
  EXPECT_EQ(cancel(MakeStatus(absl::StatusCode::kFailedPrecondition, "x")), std::pair(3, EPERM));
}

// ---- pods

class FluxcliTest : public testing::Test {
 protected:
  FluxcliTest() {
    v1::CreateGraphRequest request;
    request.set_graph(TestGraph());
    request.set_policy("low");
    auto graph = PrivateGraph::Make(request, 1000);
    EXPECT_TRUE(graph.ok()) << graph.status();
    graph_ = *std::move(graph);
    request_.mutable_ps()->set_id("default/pod");
    request_.mutable_ps()->set_cpu(2);
    request_.set_count(3);
  }

  ::fluxcli::MatchResponse Match() {
    const auto match = ToMatch(request_, graph_->units());
    EXPECT_TRUE(match.ok()) << match.status();
    v1::MatchResponse response;
    const absl::Status status = graph_->Match(*match, &response);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(graph_->GiveReason(*match, &response).ok());
    return ToFluxcliResponse(request_, graph_->units(), response, &reason_);
  }
  // "node0 2, node1 1"
  static std::string Nodes(const ::fluxcli::MatchResponse& response) {
    std::string text;
    for (const auto& node : response.nodelist()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", node.nodeid(), node.tasks());
    }
    return text;
  }

  std::unique_ptr<PrivateGraph> graph_;
  ::fluxcli::MatchRequest request_;
  std::string reason_;
};

TEST_F(FluxcliTest, PodsAreSlots) {
  request_.set_count(8);
  const ::fluxcli::MatchResponse response = Match();
  EXPECT_EQ(response.podid(), "default/pod");
  EXPECT_EQ(response.jobid(), 1);
  EXPECT_EQ(Nodes(response), "node0 2, node1 2, node2 2, node3 2");
  EXPECT_EQ(reason_, "");
}

TEST_F(FluxcliTest, APodIsOnOneNode) {
  request_.mutable_ps()->set_cpu(3);
  request_.set_count(4);
  EXPECT_EQ(Nodes(Match()), "node0 1, node1 1, node2 1, node3 1");
  request_.mutable_ps()->set_cpu(5);
  const ::fluxcli::MatchResponse response = Match();
  EXPECT_EQ(response.nodelist_size(), 0);
  EXPECT_EQ(response.jobid(), 0);
  EXPECT_THAT(reason_, HasSubstr("core"));
}

TEST_F(FluxcliTest, MemoryAndGpusCount) {
  request_.mutable_ps()->set_cpu(1);
  request_.mutable_ps()->set_memory((int64_t{5} << 30) + 1);
  EXPECT_EQ(Match().nodelist_size(), 3);
  request_.mutable_ps()->set_memory(0);
  request_.mutable_ps()->set_gpu(2);
  EXPECT_EQ(Match().nodelist_size(), 3);
}

TEST_F(FluxcliTest, BytesAreRoundedUpToTheUnit) {
  request_.mutable_ps()->set_memory((int64_t{1} << 20) + 1);
  const json spec = json::parse(ToMatch(request_, {})->jobspec());
  EXPECT_EQ(spec["resources"][0]["with"][1]["count"], 2);
  const SlotUnits cluster = {.cpu = "cpu",
                             .per_core = 1000,
                             .memory_bytes = 1,
                             .gpu = "nvidia.com/gpu",
                             .storage = "ephemeral-storage",
                             .storage_bytes = 1};
  request_.mutable_ps()->set_gpu(1);
  request_.mutable_ps()->set_storage(77);
  const json slot = json::parse(ToMatch(request_, cluster)->jobspec())["resources"][0];
  EXPECT_EQ(slot["count"], 3);
  EXPECT_EQ(slot["with"][0]["count"], 2000);
  EXPECT_EQ(slot["with"][1]["count"], (1 << 20) + 1);
  EXPECT_EQ(slot["with"][2]["type"], "nvidia.com/gpu");
  EXPECT_EQ(slot["with"][3]["count"], 77);
}

TEST_F(FluxcliTest, LabelsArePropertiesOfNodes) {
  request_.mutable_ps()->add_labels("ssd");
  request_.set_count(4);
  EXPECT_EQ(Nodes(Match()), "node1 2, node3 2");
}

TEST_F(FluxcliTest, TheZoneLabelWantsASubnet) {
  request_.mutable_ps()->add_labels("zone");
  const json resource = json::parse(ToMatch(request_, {})->jobspec())["resources"][0];
  EXPECT_EQ(resource["type"], "subnet");
  EXPECT_EQ(resource["with"][0]["type"], "node");
  EXPECT_EQ(resource["with"][0]["with"][0]["count"], 3);
}

TEST_F(FluxcliTest, NothingSaidIsOne) {
  request_.mutable_ps()->set_cpu(0);
  request_.set_count(0);
  EXPECT_EQ(Nodes(Match()), "node0 1");
}

TEST_F(FluxcliTest, NonsenseIsRefused) {
  request_.mutable_ps()->set_memory(-1);
  EXPECT_THAT(Message(ToMatch(request_, {}).status()), HasSubstr("memory"));
  request_.mutable_ps()->set_memory(0);
  request_.set_count(-1);
  EXPECT_THAT(Message(ToMatch(request_, {}).status()), HasSubstr("count"));
  request_.set_count(1);
  request_.set_request("take");
  EXPECT_TRUE(absl::IsInvalidArgument(ToMatch(request_, {}).status()));
}

TEST(SlotUnitsTest, UnitsArePowersOf1024) {
  EXPECT_EQ(BytesOfUnit(""), 1 << 20);
  EXPECT_EQ(BytesOfUnit("B"), 1);
  EXPECT_EQ(BytesOfUnit("KB"), 1 << 10);
  EXPECT_EQ(BytesOfUnit("GiB"), 1 << 30);
  EXPECT_EQ(BytesOfUnit("ells"), 0);
}

// Each would be two levels around the slots: a tree that takes minutes to make, and is too deep to
// be written.
TEST_F(FluxcliTest, LabelsDoNotMakeADeepTree) {
  for (int i = 0; i < 100'000; ++i) request_.mutable_ps()->add_labels("zone");
  EXPECT_TRUE(absl::IsInvalidArgument(ToMatch(request_, graph_->units()).status()));
  request_.mutable_ps()->clear_labels();
  request_.mutable_ps()->add_labels("zone");
  EXPECT_TRUE(ToMatch(request_, graph_->units()).ok());
  request_.mutable_ps()->add_labels("zone");
  EXPECT_THAT(Message(ToMatch(request_, graph_->units()).status()), HasSubstr("ps.labels"));
}

}  // namespace
}  // namespace fluxqueue::graph_service
