// The queue's API over a real Kafka and a real Postgres.
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/tracing/trace_context.h"
#include "services/queue/testing_queue_api.h"

namespace fluxqueue::queue {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(QueueApiTest, AClaimHoldsNodesUntilItIsCancelled) {
  const v1::SubmitClaimResponse all = Claim("all", 2, 3000);
  EXPECT_EQ(all.job().state(), v1::STATE_RUNNING);
  EXPECT_EQ(all.job().kind(), "Claim");
  EXPECT_EQ(all.job().name(), "claim-" + all.job().id().substr(0, 8));
  EXPECT_EQ(all.job().owner(), "ann");
  EXPECT_EQ(all.job().duration().seconds(), 600);  // the queue's default
  EXPECT_FALSE(all.repeated());

  const v1::GetJobResponse held = Get(all.job().id());
  ASSERT_THAT(held.slots(), SizeIs(2));
  EXPECT_NE(held.slots(0).node(), held.slots(1).node());
  std::vector<v1::State> states;
  for (const auto& transition : held.history()) states.push_back(transition.state());
  EXPECT_THAT(states, ElementsAre(v1::STATE_PENDING, v1::STATE_ALLOCATED, v1::STATE_RUNNING));

  const v1::SubmitClaimResponse more = Claim("more", 1, 2000);
  EXPECT_EQ(more.job().state(), v1::STATE_PENDING);
  EXPECT_EQ(more.job().reason(), "Busy");
  v1::PositionRequest where;
  where.set_job_id(more.job().id());
  v1::PositionResponse place;
  ASSERT_TRUE(Call(&v1::Queue::Stub::Position, where, &place).ok());
  EXPECT_EQ(place.position(), 1);
  EXPECT_FALSE(place.has_expected_start());
  EXPECT_EQ(place.job().id(), more.job().id());

  ASSERT_TRUE(Cancel(all.job().id()).ok());
  ExpectState(all.job().id(), v1::STATE_CANCELLED);
  EXPECT_THAT(Get(all.job().id()).job().message(), HasSubstr("cancelled by ipv4:127.0.0.1"));
  ExpectState(more.job().id(), v1::STATE_RUNNING);
}

// With the matcher stopped: nobody answers.
class AbandonedCycleTest : public QueueApiTest {
 protected:
  void SetUp() override {
    stack_->StopMatcher();
    v1::SubmitClaimRequest request = ClaimRequest(Name("waits"), 1, 1000);
    request.clear_wait();
    job_ = Claim(request).job().id();
    Stack::WaitFor([] { return CycleInFlight() > 0; }, "a cycle");
  }
  // Of this test: a client's id is accepted once.
  static std::string Name(const std::string& claim) {
    return fmt::format(
        "{}-{}", ::testing::UnitTest::GetInstance()->current_test_info()->name(), claim);
  }
  static int64_t CycleInFlight() {
    return stack_->Number("SELECT coalesce(max(cycle_id), 0) FROM queue.cycles WHERE NOT answered");
  }
  void ExpectThatOthersGoOn() {
    Stack::WaitFor([this] { return Get(job_).job().reason() == "Retry"; }, "the job to be aside");
    stack_->StartMatcher();
    EXPECT_EQ(Claim(Name("other"), 1, 1000).job().state(), v1::STATE_RUNNING);
    EXPECT_EQ(Get(job_).job().state(), v1::STATE_PENDING);
  }

  std::string job_;
};

TEST_F(AbandonedCycleTest, ByACommand) {
  v1::AbandonCycleRequest request;
  request.set_pool(kPool);
  v1::AbandonCycleResponse response;
  const int64_t cycle = CycleInFlight();
  // A call that comes late does not abandon the next one.
  request.set_cycle_id(static_cast<uint64_t>(cycle + 1));
  const grpc::Status other = Call(&v1::Queue::Stub::AbandonCycle, request, &response);
  EXPECT_EQ(other.error_message(),
            fmt::format(
                "no cycle {} of pool main waits for its answer; cycle {} does", cycle + 1, cycle));
  request.set_cycle_id(static_cast<uint64_t>(cycle));
  EXPECT_TRUE(Call(&v1::Queue::Stub::AbandonCycle, request, &response).ok());
  EXPECT_EQ(static_cast<int64_t>(response.cycle_id()), cycle);
  Stack::WaitFor([] { return CycleInFlight() == 0; }, "the cycle to be closed");
  request.clear_cycle_id();
  const grpc::Status none = Call(&v1::Queue::Stub::AbandonCycle, request, &response);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(none.error_message(), "no cycle of pool main waits for its answer");
  ExpectThatOthersGoOn();
}

TEST_F(AbandonedCycleTest, AsItsAnswerIsADeadLetter) {
  events::v1::Envelope answer = queue_core::Answered(static_cast<uint64_t>(CycleInFlight()),
                                                     {{job_, 1, queue_core::kBusyKind, "\xff"}});
  stack_->Say("hand/1", answer);
  ExpectThatOthersGoOn();
}

TEST_F(QueueApiTest, OfALongHistoryTheEndIsTold) {
  const std::string id = Claim("restless", 1, 100).job().id();
  constexpr int kTimes = 300;
  v1::HoldRequest hold;
  hold.set_job_id(id);
  v1::ReleaseRequest release;
  release.set_job_id(id);
  for (int i = 0; i < kTimes; ++i) {
    v1::HoldResponse held;
    ASSERT_TRUE(Call(&v1::Queue::Stub::Hold, hold, &held).ok());
    v1::ReleaseResponse released;
    ASSERT_TRUE(Call(&v1::Queue::Stub::Release, release, &released).ok());
  }
  Stack::WaitFor([&] { return Get(id).job().version() == 3 + 2 * kTimes; }, "the last release");
  const v1::GetJobResponse told = Get(id);
  ASSERT_THAT(told.history(), SizeIs(500));
  EXPECT_EQ(told.history_before(), 2 * kTimes + 3 - 500);
  EXPECT_EQ(told.history(0).version(), told.history_before() + 1);
  EXPECT_THAT(told.history(499).message(), HasSubstr("released by ipv4:127.0.0.1"));
  EXPECT_THAT(told.history(498).message(), HasSubstr("held by ipv4:127.0.0.1"));
  ASSERT_TRUE(Cancel(id).ok());
}

TEST_F(QueueApiTest, AClaimEndsWhenItsTimeIsOver) {
  v1::SubmitClaimRequest request = ClaimRequest("short", 1, 1000);
  request.mutable_duration()->set_nanos(300'000'000);
  request.set_name("brief");
  const v1::SubmitClaimResponse claim = Claim(request);
  EXPECT_EQ(claim.job().state(), v1::STATE_RUNNING);
  EXPECT_EQ(claim.job().name(), "brief");
  ExpectState(claim.job().id(), v1::STATE_SUCCEEDED);
  EXPECT_EQ(Get(claim.job().id()).job().reason(), "Expired");
  // What it held is free again, and still told.
  EXPECT_THAT(Get(claim.job().id()).slots(), SizeIs(1));
  Stack::WaitFor([&] { return Get(claim.job().id()).slots(0).released(); }, "its slot to be free");
}

TEST_F(QueueApiTest, JobsThatEndedLongAgoAreForgotten) {
  const auto end_one = [this](const std::string& name) {
    const v1::SubmitClaimResponse claim = Claim(name, 1, 1000);
    EXPECT_TRUE(Cancel(claim.job().id()).ok());
    ExpectState(claim.job().id(), v1::STATE_CANCELLED);
    return claim.job().id();
  };
  const std::string first = end_one("forgotten");
  const std::string last = end_one("remembered");
  const v1::SubmitClaimResponse live = Claim("lives", 1, 1000);
  EXPECT_EQ(stack_->PruneEndedJobs(1h, 0), 0U);
  EXPECT_EQ(stack_->PruneEndedJobs(Millis(0), 10'000), 0U);
  EXPECT_GE(stack_->PruneEndedJobs(Millis(0), 1), 1U);
  const auto rows_of = [](const std::string& job_id) {
    return stack_->Number("SELECT (SELECT count(*) FROM queue.jobs WHERE job_id = '" + job_id +
                          "') + (SELECT count(*) FROM queue.job_events WHERE job_id = '" + job_id +
                          "')");
  };
  EXPECT_EQ(rows_of(first), 0);
  EXPECT_GT(rows_of(last), 1);
  EXPECT_EQ(Get(live.job().id()).job().state(), v1::STATE_RUNNING);
}

TEST_F(QueueApiTest, TheSameClientIdIsTheSameClaim) {
  const v1::SubmitClaimResponse first = Claim("once", 1, 1000);
  // In whatever way it is asked for the second time.
  const v1::SubmitClaimResponse second = Claim("once", 2, 500);
  EXPECT_TRUE(second.repeated());
  EXPECT_EQ(second.job().id(), first.job().id());
  EXPECT_EQ(second.job().slots(), 1u);
  ASSERT_TRUE(Cancel(first.job().id()).ok());
  ExpectState(first.job().id(), v1::STATE_CANCELLED);
  const v1::SubmitClaimResponse third = Claim("once", 1, 1000);
  EXPECT_TRUE(third.repeated());
  EXPECT_EQ(third.job().state(), v1::STATE_CANCELLED);
  EXPECT_EQ(
      stack_->Number("SELECT count(*) FROM queue.jobs WHERE job_id = '" + first.job().id() + "'"),
      1);
}

TEST_F(QueueApiTest, ManyAtOnceWithTheSameClientIdAreOneJob) {
  std::vector<std::jthread> threads;
  std::mutex mutex;
  std::set<std::string> ids;
  int fresh = 0;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      v1::SubmitClaimResponse response;
      const grpc::Status status =
          Call(&v1::Queue::Stub::SubmitClaim, ClaimRequest("crowd", 1, 1000), &response);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(status.ok()) << status.error_message();
      ids.insert(response.job().id());
      fresh += response.repeated() ? 0 : 1;
    });
  }
  threads.clear();
  ASSERT_THAT(ids, SizeIs(1));
  EXPECT_GE(fresh, 1);
  claims_.push_back(*ids.begin());
  EXPECT_EQ(Get(*ids.begin()).history_size(), 3);
}

TEST_F(QueueApiTest, PriorityHoldAndRelease) {
  const std::string all = Claim("full", 2, 4000).job().id();
  const std::string waits = Claim("waits", 1, 1000).job().id();

  v1::SetPriorityRequest priority;
  priority.set_job_id(waits);
  priority.set_priority(7);
  priority.set_client_id("raise");
  v1::SetPriorityResponse raised;
  ASSERT_TRUE(Call(&v1::Queue::Stub::SetPriority, priority, &raised).ok());
  EXPECT_EQ(raised.job().id(), waits);
  EXPECT_FALSE(raised.repeated());
  Stack::WaitFor([&] { return Get(waits).job().priority() == 7; }, "priority 7");

  priority.set_client_id("lower");
  priority.set_priority(-3);
  ASSERT_TRUE(Call(&v1::Queue::Stub::SetPriority, priority, &raised).ok());
  Stack::WaitFor([&] { return Get(waits).job().priority() == -3; }, "priority -3");
  // The answer to the first was lost, say: repeated, it does not undo the second.
  priority.set_client_id("raise");
  priority.set_priority(7);
  ASSERT_TRUE(Call(&v1::Queue::Stub::SetPriority, priority, &raised).ok());
  EXPECT_TRUE(raised.repeated());
  EXPECT_EQ(raised.job().priority(), -3);
  // For another job it is a mistake.
  priority.set_job_id(all);
  const grpc::Status mistaken = Call(&v1::Queue::Stub::SetPriority, priority, &raised);
  EXPECT_EQ(mistaken.error_code(), grpc::StatusCode::FAILED_PRECONDITION);

  v1::HoldRequest hold;
  hold.set_job_id(waits);
  v1::HoldResponse held;
  ASSERT_TRUE(Call(&v1::Queue::Stub::Hold, hold, &held).ok());
  Stack::WaitFor([&] { return Get(waits).job().reason() == "Held"; }, "it to be held");
  ASSERT_TRUE(Cancel(all).ok());
  ExpectState(all, v1::STATE_CANCELLED);
  v1::PositionRequest where;
  where.set_job_id(waits);
  v1::PositionResponse place;
  ASSERT_TRUE(Call(&v1::Queue::Stub::Position, where, &place).ok());
  EXPECT_EQ(place.position(), 0);
  EXPECT_EQ(place.job().state(), v1::STATE_PENDING);

  v1::ReleaseRequest release;
  release.set_job_id(waits);
  v1::ReleaseResponse released;
  ASSERT_TRUE(Call(&v1::Queue::Stub::Release, release, &released).ok());
  EXPECT_EQ(released.job().reason(), "Held");  // as it was when the command was accepted
  ExpectState(waits, v1::STATE_RUNNING);
}

TEST_F(QueueApiTest, ListsByPage) {
  std::set<std::string> made;
  for (int i = 0; i < 5; ++i) made.insert(Claim(fmt::format("page-{}", i), 1, 100).job().id());
  v1::ListJobsRequest request;
  request.set_pool(kPool);
  request.set_kind("Claim");
  request.set_page_size(2);
  std::vector<std::string> listed;
  std::vector<int> sizes;
  do {
    v1::ListJobsResponse response;
    ASSERT_TRUE(Call(&v1::Queue::Stub::ListJobs, request, &response).ok());
    for (const v1::Job& job : response.jobs()) listed.push_back(job.id());
    sizes.push_back(response.jobs_size());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1));
  EXPECT_THAT(listed, ::testing::ElementsAreArray(made));

  const auto count = [&](const std::function<void(v1::ListJobsRequest&)>& filter) {
    v1::ListJobsRequest filtered;
    filter(filtered);
    v1::ListJobsResponse response;
    EXPECT_TRUE(Call(&v1::Queue::Stub::ListJobs, filtered, &response).ok());
    return response.jobs_size();
  };
  EXPECT_EQ(count([](auto& r) { r.set_pool("nowhere"); }), 0);
  EXPECT_EQ(count([](auto& r) { r.set_queue("nowhere"); }), 0);
  EXPECT_EQ(count([](auto& r) { r.set_namespace_("team"); }), 0);
  EXPECT_EQ(count([](auto& r) { r.set_kind("Job"); }), 0);
  EXPECT_EQ(count([](auto& r) { r.add_states(v1::STATE_RUNNING); }), 5);
  EXPECT_EQ(count([](auto& r) { r.add_states(v1::STATE_PENDING); }), 0);
  EXPECT_GT(count([](auto& r) { r.add_states(v1::STATE_CANCELLED); }), 0);
  EXPECT_GT(count([](auto& r) { r.set_ended(true); }), 5);
}

TEST_F(QueueApiTest, Queues) {
  events::v1::Envelope made = queue_core::QueueMade("part");
  events::v1::QueueConfigured* part = made.mutable_queue_configured();
  part->set_parent("default");
  part->set_weight(3);
  part->mutable_limits()->set_running_jobs(0);
  part->mutable_namespace_limits()->set_gpu_seconds(5400);
  events::v1::Amount* cpu = part->mutable_user_limits()->add_amounts();
  cpu->set_resource("cpu");
  cpu->set_amount(1500);
  stack_->Say("admission/watch", made);
  Claim("counted", 1, 100);
  v1::ListQueuesResponse all;
  ASSERT_TRUE(Call(&v1::Queue::Stub::ListQueues, {}, &all).ok());
  ASSERT_THAT(all.queues(), SizeIs(2));
  const v1::QueueInfo& below = all.queues(1);
  EXPECT_EQ(below.parent(), "default");
  EXPECT_EQ(below.weight(), 3);
  EXPECT_EQ(below.order(), "priority");
  EXPECT_TRUE(below.limits().has_running_jobs());
  EXPECT_EQ(below.limits().running_jobs(), 0u);
  EXPECT_FALSE(below.limits().has_queued_jobs());
  EXPECT_EQ(below.namespace_limits().gpu_hours(), 1.5);
  EXPECT_EQ(below.user_limits().amounts().at("cpu"), "1500m");
  EXPECT_TRUE(below.use().empty());
  v1::GetQueueRequest request;
  request.set_pool(kPool);
  request.set_queue("default");
  v1::GetQueueResponse one;
  ASSERT_TRUE(Call(&v1::Queue::Stub::GetQueue, request, &one).ok());
  EXPECT_EQ(one.queue().strategy(), "fcfs");
  EXPECT_TRUE(one.queue().exists());
  EXPECT_EQ(one.queue().max_duration().seconds(), 3600);
  ASSERT_THAT(one.queue().live(), SizeIs(1));
  EXPECT_EQ(one.queue().live(0).state(), v1::STATE_RUNNING);
  EXPECT_EQ(one.queue().live(0).jobs(), 1);
  EXPECT_EQ(one.queue().parent(), "");
  EXPECT_FALSE(one.queue().has_limits());
  EXPECT_EQ(one.queue().use().at("cpu"), "100m");
  request.set_queue("nowhere");
  EXPECT_EQ(Call(&v1::Queue::Stub::GetQueue, request, &one).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(QueueApiTest, AJobsIdThatComesASecondTimeIsADeadLetterAndThePoolGoesOn) {
  const std::string ended = Claim("comes-twice", 1, 100).job().id();
  ASSERT_TRUE(Cancel(ended).ok());
  ExpectState(ended, v1::STATE_CANCELLED);
  // Until all that it held is known to be given back, one that comes again is only late.
  Stack::WaitFor(
      [&] {
        stack_->Say("admission/watch", queue_core::Submitted(ended));
        return stack_->first().dead_letters() > 0;
      },
      "a dead letter");
  EXPECT_EQ(Get(ended).job().state(), v1::STATE_CANCELLED);
  EXPECT_EQ(Claim("afterwards", 1, 100).job().state(), v1::STATE_RUNNING);
}

TEST_F(QueueApiTest, WatchersSeeWhatIsThereAndWhatBecomesOfIt) {
  const std::string there = Claim("there", 1, 100).job().id();
  v1::WatchJobsRequest request;
  request.set_pool(kPool);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  const auto reader = stack_->first().stub().WatchJobs(&context, request);
  v1::WatchJobsResponse said;
  ASSERT_TRUE(reader->Read(&said));
  EXPECT_EQ(said.job().id(), there);
  EXPECT_EQ(said.job().state(), v1::STATE_RUNNING);
  ASSERT_TRUE(reader->Read(&said));
  EXPECT_TRUE(said.listed());
  const std::string later = Claim("later", 1, 100).job().id();
  for (const v1::State state : {v1::STATE_PENDING, v1::STATE_ALLOCATED, v1::STATE_RUNNING}) {
    ASSERT_TRUE(reader->Read(&said));
    EXPECT_EQ(said.job().id(), later);
    EXPECT_EQ(said.job().state(), state);
  }
  ASSERT_TRUE(Cancel(there).ok());
  ASSERT_TRUE(reader->Read(&said));
  EXPECT_EQ(said.job().id(), there);
  EXPECT_EQ(said.job().state(), v1::STATE_CANCELLED);
  context.TryCancel();
  EXPECT_FALSE(reader->Read(&said));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);

  request.set_pool("nowhere");
  grpc::ClientContext other;
  const auto nowhere = stack_->first().stub().WatchJobs(&other, request);
  EXPECT_FALSE(nowhere->Read(&said));
  EXPECT_EQ(nowhere->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(QueueApiTest, SaysWhatIsWrong) {
  v1::GetJobRequest get;
  v1::GetJobResponse got;
  get.set_job_id("nobody");
  grpc::Status status = Call(&v1::Queue::Stub::GetJob, get, &got);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("there is no job nobody"));
  EXPECT_EQ(Cancel("nobody").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(FieldOf(Cancel("")), "job_id");

  const auto refused = [&](const std::function<void(v1::SubmitClaimRequest&)>& change) {
    v1::SubmitClaimRequest request = ClaimRequest("bad", 1, 1000);
    change(request);
    v1::SubmitClaimResponse response;
    status = Call(&v1::Queue::Stub::SubmitClaim, request, &response);
    return status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ? FieldOf(status) : "";
  };
  EXPECT_EQ(refused([](auto& r) { r.clear_client_id(); }), "client_id");
  EXPECT_EQ(refused([](auto& r) { r.set_client_id(std::string(257, 'x')); }), "client_id");
  EXPECT_EQ(refused([](auto& r) { r.set_owner(std::string("a\0b", 3)); }), "owner");
  EXPECT_EQ(refused([](auto& r) { r.set_jobspec("{"); }), "jobspec");
  EXPECT_EQ(refused([](auto& r) { r.mutable_duration()->set_seconds(-1); }), "duration");
  EXPECT_EQ(refused([](auto& r) { r.mutable_duration()->set_seconds(7200); }), "duration");
  EXPECT_THAT(status.error_message(), HasSubstr("allowed: up to 3600 s"));
  EXPECT_EQ(refused([](auto& r) { r.mutable_duration(); }), "duration");  // 0: unlimited
  refused([](auto& r) { r.set_pool("nowhere"); });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << status.error_message();

  const std::string ended = Claim("ended", 1, 100).job().id();
  ASSERT_TRUE(Cancel(ended, "first").ok());
  ExpectState(ended, v1::STATE_CANCELLED);
  status = Cancel(ended);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("has ended (Cancelled)"));
  // But the call that did it can be repeated.
  EXPECT_TRUE(Cancel(ended, "first").ok());
}

TEST_F(QueueApiTest, RejectedAndUnknownQueuesAreAnswers) {
  v1::SubmitClaimRequest request = ClaimRequest("large", 1, 64'000);
  const v1::SubmitClaimResponse large = Claim(request);
  EXPECT_EQ(large.job().state(), v1::STATE_PENDING);
  EXPECT_EQ(large.job().reason(), "Unsatisfiable");
  request = ClaimRequest("astray", 1, 100);
  request.set_queue("nowhere");
  const v1::SubmitClaimResponse astray = Claim(request);
  EXPECT_EQ(astray.job().state(), v1::STATE_SUBMITTED);
  EXPECT_EQ(astray.job().reason(), "NoQueue");
}

TEST_F(QueueApiTest, AnyReplicaAnswers) {
  std::unique_ptr<Replica> second = stack_->MakeReplica("queue-2");
  // The group gives half of the partitions away; which, it decides.
  Stack::WaitFor(
      [] { return stack_->Number("SELECT count(DISTINCT holder) FROM queue.inbox") == 2; },
      "both to hold something");
  Stack::WaitFor([&] { return stack_->first().Holds() != second->Holds(); }, "one holder");
  Replica& other = stack_->first().Holds() ? *second : stack_->first();

  v1::WatchJobsRequest watch;
  watch.set_pool(kPool);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  const auto reader = other.stub().WatchJobs(&context, watch);
  v1::WatchJobsResponse said;
  ASSERT_TRUE(reader->Read(&said));
  EXPECT_TRUE(said.listed());

  const v1::SubmitClaimResponse claim = Claim(ClaimRequest("afar", 1, 100), other.stub());
  EXPECT_EQ(claim.job().state(), v1::STATE_RUNNING);
  ASSERT_TRUE(reader->Read(&said));
  EXPECT_EQ(said.job().id(), claim.job().id());

  v1::PositionRequest where;
  where.set_job_id(claim.job().id());
  v1::PositionResponse place;
  grpc::ClientContext traced;
  traced.AddMetadata(tracing::kTraceparent, tracing::Traceparent(claim.job().id()));
  ASSERT_TRUE(other.stub().Position(&traced, where, &place).ok());
  // The caller's span, below it that of the replica which was asked, below it the holder's.
  std::map<std::string, std::string> below;  // by its parent
  Stack::WaitFor(
      [&below] {
        for (const auto& span : stack_->collector().Spans()) {
          if (span["name"] == "rpc Position") below[span["parentSpanId"]] = span["spanId"];
        }
        return below.size() == 2;
      },
      "a span of each replica");
  EXPECT_TRUE(below.contains(below[tracing::SpanId(claim.job().id(), 0, tracing::kJobSpan)]));
  v1::CancelJobRequest cancel;
  cancel.set_job_id(claim.job().id());
  v1::CancelJobResponse cancelled;
  ASSERT_TRUE(Call(&v1::Queue::Stub::CancelJob, cancel, &cancelled, other.stub()).ok());
  ExpectState(claim.job().id(), v1::STATE_CANCELLED);
  EXPECT_THAT(Get(claim.job().id()).job().message(), HasSubstr("cancelled by ipv4:127.0.0.1"));

  // When one goes, the other takes its pools, and answers itself.
  second.reset();
  Stack::WaitFor([] { return stack_->first().Holds(); }, "the first to hold the pool again");
  EXPECT_EQ(Claim("after", 1, 100).job().state(), v1::STATE_RUNNING);
}

}  // namespace
}  // namespace fluxqueue::queue
