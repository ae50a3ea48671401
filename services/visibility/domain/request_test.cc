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
  // Held, where somebody meant to release.
  EXPECT_THAT(refused("claims/a/hold", R"({"held": false})"),
              HasSubstr("held: allowed: apiVersion, kind, metadata, spec"));
  EXPECT_THAT(refused("claims/a/hold", R"({"spec": null})"), HasSubstr("spec: allowed: an object"));
  EXPECT_THAT(refused("claims/a/hold", R"({"spec": {"held": null}})"), HasSubstr("true, false"));
  EXPECT_THAT(refused("claims/a/move", R"({"spec": {"queue": "a\u0000"}})"),
              HasSubstr("spec.queue"));
}

TEST(ReadAsk, ADeepBodyEndsNothing) {
  const std::string open(30'000, '[');
  const std::string close(30'000, ']');
  for (const std::string& body : {open, "{\"spec\": {\"held\": " + open + close + "}}"}) {
    EXPECT_EQ(CodeOf("POST", "claims/a/hold", "", body.c_str()),
              absl::StatusCode::kInvalidArgument);
  }
}

// Whatever its path and query look like, it is what the API server has judged, or nothing.
TEST(ReadAsk, ReadsPathsAndQueriesAsTheApiServerDoes) {
  for (const char* path : {"namespaces/t%2Fjobs/jobs",
                           "namespaces//jobs",
                           "namespaces/t/jobs/job-a%2Fcancel",
                           "namespaces/t/jobs/../jobs",
                           "namespaces/t/jobs/",
                           "namespaces/t/jobs/job-a/",
                           "watch/namespaces/t/jobs",
                           "namespaces/t/jobs%00",
                           "namespaces/t/jobs/job-a/explanation%00"}) {
    EXPECT_FALSE(ReadAsk("GET", path, "", "").ok()) << path;
  }
  for (const char* query : {"%77atch=true", "watch=%74rue", "watch=false&watch=true", "watch=1"}) {
    EXPECT_EQ(CodeOf("GET", "jobs", query), absl::StatusCode::kUnimplemented) << query;
  }
  EXPECT_EQ(CodeOf("GET", "jobs", "l%61belSelector=a"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read("GET", "jobs", "l%69mit=4").limit, 4);
}

TEST(ReadAsk, SelectorsAreBounded) {
  const std::string long_name(60'000, 'a');
  EXPECT_EQ(CodeOf("GET", "jobs", ("fieldSelector=queue=" + long_name).c_str()),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("GET", "jobs", ("continue=" + long_name).c_str()),
            absl::StatusCode::kInvalidArgument);
  std::string many = "fieldSelector=queue=a";
  for (int i = 0; i < 10'000; ++i) many += ",q=a";
  const absl::Status refused = ReadAsk("GET", "jobs", many, "").status();
  EXPECT_LT(Message(refused).size(), 500U);
}

TEST(Command, IsJson) {
  for (const char* type : {"", "application/json", "application/json; charset=utf-8"}) {
    EXPECT_TRUE(CheckContentType(type).ok()) << type;
  }
  for (const char* type : {"text/plain",
                           "application/x-www-form-urlencoded",
                           "application/vnd.kubernetes.protobuf",
                           "application/jsonp",
                           "text/plain; application/json"}) {
    EXPECT_FALSE(CheckContentType(type).ok()) << type;
  }
}

}  // namespace
}  // namespace fluxqueue::visibility
