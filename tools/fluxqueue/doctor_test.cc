#include "tools/fluxqueue/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::cli {
namespace {

TEST(DoctorTest, AServiceSaysItsVersionInItsMetrics) {
  const auto build = BuildOf(
      "# HELP fluxqueue_build_info The version that runs; always 1.\n"
      "# TYPE fluxqueue_build_info gauge\n"
      "fluxqueue_build_info{component=\"queue\",version=\"0.2.0\"} 1\n"
      "fluxqueue_other{version=\"7\"} 1\n");
  ASSERT_TRUE(build.has_value());
  EXPECT_EQ(build->service, "queue");
  EXPECT_EQ(build->version, "0.2.0");
  EXPECT_FALSE(BuildOf("# TYPE fluxqueue_build_info gauge\nother 1\n").has_value());
}

TEST(DoctorTest, AServiceOfAnotherVersionIsNamed) {
  Findings findings;
  JudgeVersions({{"admission", "2"},
                 {"admission", "2"},
                 {"queue", "2"},
                 {"queue", "1"},
                 {"matcher", "1"},
                 {"binder", "2"}},
                "2",
                &findings);
  EXPECT_TRUE(findings.healthy());
  EXPECT_EQ(findings.Text(false),
            "ok    admission  2 × version 2\n"
            "warn  queue      1 × version 1, 1 × version 2; this program is 2\n"
            "                 → bring all to one version (helm upgrade)\n"
            "warn  matcher    1 × version 1; this program is 2\n"
            "                 → bring all to one version (helm upgrade)\n"
            "ok    binder     1 × version 2\n"
            "warn  cleanup    no replica says its version\n"
            "                 → see that it runs, and its log\n");
}

kubernetes::ObjectMeta Pod(const std::string& space, const std::string& name) {
  kubernetes::ObjectMeta meta;
  meta.namespace_name = space;
  meta.name = name;
  return meta;
}

TEST(DoctorTest, WhatRunsPastTheQueueIsNamed) {
  const std::vector<kubernetes::Namespace> spaces = {
      {.name = "lab", .labels = {{"fluxqueue.io/managed", "true"}}},
      {.name = "free", .labels = {}}};
  Findings clean;
  JudgeBypass(spaces, {Pod("free", "a")}, &clean);
  EXPECT_EQ(clean.Text(false), "ok    past the queue  nothing runs in managed namespaces\n");
  std::vector<kubernetes::ObjectMeta> pods;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) pods.push_back(Pod("lab", name));
  pods.push_back(Pod("free", "g"));
  Findings past;
  JudgeBypass(spaces, pods, &past);
  EXPECT_TRUE(past.healthy());
  EXPECT_EQ(past.Text(false),
            "warn  past the queue  6 pods run in managed namespaces and have not been through it: "
            "lab/a, lab/b, lab/c, lab/d, lab/e, …\n"
            "                      → deploy/docs/runbooks/FluxqueueQueueBypassed.md\n");
}

TEST(DoctorTest, ALabelOfANamespaceThatHasNoEffectIsSaid) {
  Findings findings;
  JudgeBypass({{.name = "a", .labels = {{"fluxqueue.io/enforce", "strict"}}},
               {.name = "b",
                .labels = {{"fluxqueue.io/managed", "true"}, {"fluxqueue.io/enforce", "strict"}}}},
              {},
              &findings);
  EXPECT_EQ(findings.Text(false),
            "warn  namespace a     the label fluxqueue.io/enforce is \"strict\" and has no effect\n"
            "                      → take it off, or set it to \"strict\" in a namespace with "
            "fluxqueue.io/managed=true\n"
            "ok    past the queue  nothing runs in managed namespaces\n");
}

TEST(DoctorTest, AnAccountThatMayDoAllIsSaid) {
  Findings own;
  JudgeAccounts(5, false, &own);
  EXPECT_EQ(own.Text(false), "ok    accounts in Postgres  one for each service\n");
  Findings shared;
  JudgeAccounts(1, true, &shared);
  EXPECT_TRUE(shared.healthy());
  EXPECT_EQ(shared.Text(false),
            "warn  accounts in Postgres  services share one: whoever has it has all\n"
            "                            → see \"Accounts in Postgres and Kafka\" in "
            "deploy/docs/security.md\n");
  Findings too_much;
  JudgeAccounts(5, true, &too_much);
  EXPECT_THAT(too_much.Text(false), ::testing::HasSubstr("the command line's may do what"));
}

}  // namespace
}  // namespace fluxqueue::cli
