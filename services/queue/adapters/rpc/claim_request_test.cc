#include "services/queue/adapters/rpc/claim_request.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::queue {
namespace {

constexpr int64_t kCenturyS = int64_t{100} * 365 * 24 * 3600;

v1::SubmitClaimRequest Request(int64_t duration_s) {
  v1::SubmitClaimRequest request;
  request.set_client_id("once");
  request.set_jobspec(R"({"version":1,"resources":[{"type":"slot","label":"s","count":2,)"
                      R"("with":[{"type":"cpu","count":500}]}],)"
                      R"("tasks":[{"command":["x"],"slot":"s","count":{"per_slot":1}}],)"
                      R"("attributes":{"system":{}}})");
  request.mutable_duration()->set_seconds(duration_s);
  return request;
}

TEST(ClaimRequestTest, TakesDurationsUpToACentury) {
  const auto claim = ReadClaim(Request(kCenturyS), 7);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->command.submit_claim().duration_ms(), kCenturyS * 1000);
  EXPECT_EQ(claim->command.submit_claim().queue(), "default");
  EXPECT_EQ(claim->command.submit_claim().spec().amounts(0).amount(), 1000);
}

TEST(ClaimRequestTest, RefusesOtherDurations) {
  for (const int64_t seconds : {int64_t{-1}, kCenturyS + 1, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(Message(ReadClaim(Request(seconds), 7).status()),
              fmt::format("duration: {} s 0 ns is not a duration from 0 to 3153600000 s", seconds));
  }
  v1::SubmitClaimRequest request = Request(1);
  request.mutable_wait()->set_seconds(kCenturyS + 1);
  EXPECT_THAT(Message(ReadClaim(request, 7).status()), testing::HasSubstr("wait: 3153600001 s"));
}

TEST(ClaimRequestTest, RefusesTextsThatNoTableTakes) {
  v1::SubmitClaimRequest request = Request(1);
  std::string& jobspec = *request.mutable_jobspec();
  jobspec.replace(jobspec.find("cpu"), 3, R"(cpu\u0000)");
  EXPECT_EQ(Message(ReadClaim(request, 7).status()),
            "jobspec: resources[0].with[0].type: holds a control character");
}

TEST(ClaimRequestTest, RefusesTextsThatCommandATerminal) {
  const std::vector<std::function<void(v1::SubmitClaimRequest*, const std::string&)>> fields = {
      [](v1::SubmitClaimRequest* request, const std::string& text) {
        request->set_client_id(text);
      },
      [](v1::SubmitClaimRequest* request, const std::string& text) { request->set_pool(text); },
      [](v1::SubmitClaimRequest* request, const std::string& text) { request->set_queue(text); },
      [](v1::SubmitClaimRequest* request, const std::string& text) { request->set_name(text); },
      [](v1::SubmitClaimRequest* request, const std::string& text) { request->set_owner(text); }};
  for (const auto& set : fields) {
    for (const char* text : {"\x1b]0;title\x07", "a\u009b2J", "ann\u202e", "\x7f", "a\nb"}) {
      v1::SubmitClaimRequest request = Request(1);
      set(&request, text);
      EXPECT_THAT(Message(ReadClaim(request, 7).status()),
                  testing::HasSubstr(": holds a control character, which no text may"));
    }
  }
}

// By rules of another namespace's pods a claim would keep these off every node.
TEST(ClaimRequestTest, RefusesWhatOnlyPodsHave) {
  const auto refusal = [](const std::string& system) {
    v1::SubmitClaimRequest request = Request(1);
    std::string& jobspec = *request.mutable_jobspec();
    const std::string before = R"("system":{)";
    jobspec.insert(jobspec.find(before) + before.size(), system);
    return Message(ReadClaim(request, 7).status());
  };
  const std::string pod = R"("job":{"pod":{"namespace":"victim"}})";
  EXPECT_EQ(refusal(pod), "jobspec: attributes.system.job.pod: a claim has no pods; leave it out");
  EXPECT_EQ(refusal(pod + R"(,"pods":{"apart":[{"key":"kubernetes.io/os","pods":{}}]})"),
            "jobspec: attributes.system.pods: a claim has no pods; leave it out");
  v1::SubmitClaimRequest request = Request(1);
  std::string& jobspec = *request.mutable_jobspec();
  jobspec.replace(jobspec.find("cpu"), 3, "hostport-80-tcp");
  EXPECT_EQ(Message(ReadClaim(request, 7).status()),
            "jobspec: hostport-80-tcp: a claim has no pods, and no host ports; leave it out");
}

// 436 bytes that name 16 MB: nothing of it is written out, so it may be asked for.
TEST(ClaimRequestTest, CountsHostsAndWritesNoneOut) {
  const auto constrained = [](const std::string& hosts) {
    v1::SubmitClaimRequest request = Request(1);
    std::string& jobspec = *request.mutable_jobspec();
    const std::string before = R"("system":{)";
    jobspec.insert(jobspec.find(before) + before.size(),
                   R"("constraints":{"hostlist":[")" + hosts + R"("]})");
    return Message(ReadClaim(request, 7).status());
  };
  EXPECT_EQ(constrained(std::string(240, 'n') + "[0-65535]"), "");
  EXPECT_THAT(constrained("n[0-65535],m"), testing::HasSubstr("more than 65536 hosts"));
}

}  // namespace
}  // namespace fluxqueue::queue
