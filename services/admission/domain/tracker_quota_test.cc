// What the tracker makes of a namespace's quota in a queue.
#include <string>

#include <gmock/gmock.h>

#include "services/admission/domain/tracker_fixture.h"

#include "fmt/format.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class QuotaTest : public TrackerTest {
 protected:
  void Allow(kubernetes::NamespaceQuota quota) {
    kubernetes::FluxQueue queue;
    queue.meta.name = "default";
    queue.namespace_quota = quota;
    facts_.Upsert(queue);
  }
  static json Numbered(int number, const char* space = "work") {
    json job = Held(JobJson(fmt::format("j{}", number)));
    job["metadata"]["uid"] = fmt::format("uid-{}", number);
    job["metadata"]["namespace"] = space;
    return job;
  }
};

TEST_F(QuotaTest, WhatIsTooMuchWaitsUntilSomethingHasEnded) {
  Allow({.jobs = 2});
  EXPECT_THAT(Observe(Numbered(1)).messages, SizeIs(1));
  EXPECT_THAT(Observe(Numbered(2)).messages, SizeIs(1));
  const TrackerOutputs refused = Observe(Numbered(3));
  EXPECT_THAT(refused.messages, IsEmpty());
  ASSERT_THAT(refused.refusals, SizeIs(1));
  EXPECT_THAT(refused.refusals[0].message, HasSubstr("spec.namespaceQuota.jobs"));
  EXPECT_THAT(Observe(Numbered(4)).messages, IsEmpty());
  // Another namespace has its own.
  EXPECT_THAT(Observe(Numbered(5, "free")).messages, SizeIs(1));
  EXPECT_THAT(Gone("uid-5").fetches, IsEmpty());
  // What is in the queue may change.
  EXPECT_THAT(Observe(Annotated(Numbered(2), "fluxqueue.io/hold", "true")).messages, SizeIs(1));
  json ended = Numbered(1);
  ended["status"]["conditions"] = json::array({{{"type", "Complete"}, {"status", "True"}}});
  const TrackerOutputs room = Observe(ended);
  ASSERT_THAT(room.fetches, SizeIs(1));
  EXPECT_EQ(room.fetches[0].uid, "uid-3");
  EXPECT_THAT(Observe(Numbered(3)).messages, SizeIs(1));
  // One that has gone is not waited for.
  Gone("uid-4");
  EXPECT_THAT(Gone("uid-3").fetches, IsEmpty());
}

TEST_F(QuotaTest, JobspecsCountByTheirBytes) {
  ASSERT_THAT(Observe(Numbered(1)).messages, SizeIs(1));
  const int64_t bytes = rows_.at("uid-1").jobspec_bytes;
  EXPECT_GT(bytes, 100);
  Allow({.jobspec_bytes = 2 * bytes + 50});
  ASSERT_THAT(Observe(Numbered(2)).messages, SizeIs(1));
  // A larger template of a job that is in the queue is too much, too.
  json large = Held(JobJson("j3", 20));
  large["metadata"]["uid"] = "uid-3";
  EXPECT_THAT(Observe(large).refusals, SizeIs(1));
  Gone("uid-2");
  ASSERT_THAT(Observe(large).messages, SizeIs(1));
  large["spec"]["template"]["spec"]["nodeSelector"] = {{"disk", std::string(100, 'x')}};
  large["metadata"]["generation"] = 2;
  const TrackerOutputs out = Observe(large);
  EXPECT_THAT(out.messages, IsEmpty());
  ASSERT_THAT(out.refusals, SizeIs(1));
  EXPECT_THAT(out.refusals[0].message, HasSubstr("spec.namespaceQuota.jobspecBytes"));
}

TEST_F(QuotaTest, CountsTheSameAfterARestartAndARollback) {
  Allow({.jobs = 2});
  ASSERT_THAT(Observe(Numbered(1)).messages, SizeIs(1));
  TrackerOutputs undone;
  tracker_.Observe(Seen(Numbered(2)), facts_, &undone);
  tracker_.Observe(Seen(Numbered(3)), facts_, &undone);
  EXPECT_THAT(undone.messages, SizeIs(1));
  tracker_.Rollback();
  ASSERT_THAT(Observe(Numbered(3)).messages, SizeIs(1));
  Restart();
  EXPECT_THAT(Observe(Numbered(2)).refusals, SizeIs(1));
}

TEST_F(QuotaTest, AnAnnotationMovesAJobOnlyWhereItCouldBeMade) {
  kubernetes::FluxQueue night;
  night.meta.name = "night";
  const json job = Annotated(Numbered(1), "fluxqueue.io/duration", "60");
  ASSERT_THAT(Observe(job).messages, SizeIs(1));
  const json moved = Annotated(job, "fluxqueue.io/queue", "night");
  const auto refusal = [&](const char* time) {
    facts_.Upsert(night);
    const TrackerOutputs out = Observe(Annotated(moved, "time", time));
    EXPECT_THAT(out.messages, IsEmpty());
    return out.refusals.empty() ? "" : out.refusals[0].message;
  };
  night.max_duration_ms = 1000;
  EXPECT_THAT(refusal("1"), HasSubstr("60s is more than FluxQueue 'night' allows"));
  night.max_duration_ms.reset();
  night.qos = {{.name = "small", .most = {{"cpu", 1}}}};
  night.default_qos = "small";
  EXPECT_THAT(refusal("2"), HasSubstr("class 'small' of QOS allows a job at most"));
  night.default_qos.clear();
  night.namespace_quota = {.jobs = 0};
  EXPECT_THAT(refusal("3"), HasSubstr("spec.namespaceQuota.jobs"));
  EXPECT_EQ(rows_.at("uid-1").queue, "default");
}

TEST_F(QuotaTest, AFullAccountStillLetsItsJobsMoveWithinIt) {
  kubernetes::FluxQueue queue;
  queue.meta.name = "lab";
  queue.namespace_quota = {.jobs = 1};
  facts_.Upsert(queue);
  for (const char* below : {"default", "night"}) {
    queue = {};
    queue.meta.name = below;
    queue.parent = "lab";
    facts_.Upsert(queue);
  }
  ASSERT_THAT(Observe(Numbered(1)).messages, SizeIs(1));
  const json moved = Annotated(Numbered(1), "fluxqueue.io/queue", "night");
  EXPECT_THAT(Observe(moved).messages, SizeIs(1));
  EXPECT_EQ(rows_.at("uid-1").queue, "night");
}

}  // namespace
}  // namespace fluxqueue::admission
