#include "services/visibility/domain/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::visibility {
namespace {

using ::testing::HasSubstr;

Ask Read(const char* method, const char* path, const char* query = "", const char* body = "") {
  const absl::StatusOr<Ask> ask = ReadAsk(method, path, query, body);
  EXPECT_TRUE(ask.ok()) << ask.status();
  return ask.value_or(Ask());
}

absl::StatusCode CodeOf(const char* method,
                        const char* path,
                        const char* query = "",
                        const char* body = "") {
  return ReadAsk(method, path, query, body).status().code();
}

TEST(ReadAsk, ListsOfJobs) {
  const Ask all =
      Read("GET", "jobs", "limit=5&continue=a%2Fb&fieldSelector=ended%3Dtrue,queue%3Dq");
  EXPECT_EQ(all.verb, Verb::kList);
  EXPECT_EQ(all.space, "");
  EXPECT_EQ(all.limit, 5);
  EXPECT_EQ(all.continue_token, "a/b");
  EXPECT_TRUE(all.ended);
  EXPECT_EQ(all.queue, "q");
  EXPECT_EQ(Read("GET", "namespaces/team/jobs").space, "team");
  EXPECT_EQ(Read("GET", "jobs", "limit=99999").limit, 250);
}

TEST(ReadAsk, OneJob) {
  const Ask ask = Read("GET", "namespaces/team/jobs/job-a.b/explanation");
  EXPECT_EQ(ask.verb, Verb::kExplain);
  EXPECT_EQ(ask.space, "team");
  EXPECT_EQ(ask.name, "job-a.b");
  EXPECT_EQ(Read("GET", "namespaces/team/jobs/job-a").verb, Verb::kGet);
  EXPECT_EQ(Read("GET", "claims/8d4f").resource, "claims");
  EXPECT_EQ(Read("GET", "queues/default").name, "default");
}

TEST(ReadAsk, Commands) {
  EXPECT_EQ(Read("POST", "namespaces/t/jobs/job-a/cancel").verb, Verb::kCancel);
  EXPECT_EQ(Read("POST", "namespaces/t/jobs/job-a/hold", "", "{}").verb, Verb::kHold);
  EXPECT_EQ(Read("POST", "namespaces/t/jobs/job-a/hold", "", R"({"spec":{"held":false}})").verb,
            Verb::kRelease);
  EXPECT_EQ(
      Read("POST", "namespaces/t/jobs/job-a/priority", "", R"({"spec":{"priority":-7}})").priority,
      -7);
  const Ask move =
      Read("POST", "claims/8d4/move", "", R"({"spec":{"queue":"b","clientId":"once"}})");
  EXPECT_EQ(move.queue_wanted, "b");
  EXPECT_EQ(move.client_id, "once");
}

TEST(ReadAsk, WhatIsNotThere) {
  for (const char* path : {"",
                           "pods",
                           "namespaces/t",
                           "namespaces/t/queues",
                           "namespaces/t/claims",
                           "jobs/job-a",
                           "queues/a/cancel",
                           "namespaces/t/jobs/job-a/exec",
                           "namespaces/t/jobs/job-a/cancel/x"}) {
    EXPECT_EQ(CodeOf("GET", path), absl::StatusCode::kNotFound) << path;
  }
}

TEST(ReadAsk, WhatIsNotAllowed) {
  EXPECT_EQ(CodeOf("DELETE", "namespaces/t/jobs/job-a"), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CodeOf("POST", "namespaces/t/jobs"), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CodeOf("GET", "namespaces/t/jobs/job-a/cancel"), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CodeOf("GET", "jobs", "watch=true"), absl::StatusCode::kUnimplemented);
}

TEST(ReadAsk, WhatIsNoValue) {
  for (const char* path : {"namespaces/..%2F/jobs",
                           "namespaces/A/jobs",
                           "namespaces/t/jobs/job-",
                           "namespaces/t/jobs/job-%00",
                           "claims/a b"}) {
    EXPECT_EQ(CodeOf("GET", path), absl::StatusCode::kInvalidArgument) << path;
  }
  for (const char* query : {"limit=x",
                            "limit=-1",
                            "limit=99999999999",
                            "labelSelector=a",
                            "fieldSelector=metadata.name=a",
                            "continue=%01"}) {
    EXPECT_EQ(CodeOf("GET", "jobs", query), absl::StatusCode::kInvalidArgument) << query;
  }
}

TEST(ReadAsk, SaysWhatACommandWants) {
  const auto refused = [](const char* path, const char* body) {
    return Message(ReadAsk("POST", path, "", body).status());
  };
  EXPECT_THAT(refused("claims/a/priority", "{}"), HasSubstr("spec.priority: required"));
  EXPECT_THAT(refused("claims/a/priority", R"({"spec":{"priority":2147483648}})"),
              HasSubstr("2147483647"));
  EXPECT_THAT(refused("claims/a/priority", R"({"spec":{"priority":18446744073709551615}})"),
              HasSubstr("2147483647"));
  EXPECT_THAT(refused("claims/a/move", R"({"spec":{"queue":"../a"}})"), HasSubstr("spec.queue"));
  EXPECT_THAT(refused("claims/a/hold", R"({"spec":{"held":"no"}})"), HasSubstr("true, false"));
  EXPECT_THAT(refused("claims/a/cancel", R"({"spec":{"now":true}})"),
              HasSubstr("spec.now: allowed: clientId"));
  EXPECT_THAT(refused("claims/a/cancel", "["), HasSubstr("no JSON object"));
}

}  // namespace
}  // namespace fluxqueue::visibility
