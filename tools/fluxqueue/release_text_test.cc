#include "tools/fluxqueue/release_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Released One(const std::string& kind, const std::string& name, Fate fate) {
  return {.release = {.kind = kind, .space = "lab", .name = name, .fate = fate}};
}

TEST(ReleaseText, APreviewCountsByNamespaceAndKind) {
  ReleaseReport report{.all = {One("Job", "a", Fate::kResume),
                               One("Job", "b", Fate::kResume),
                               One("Pod", "c", Fate::kUngate)}};
  EXPECT_EQ(Text(report, false, false),
            "NAMESPACE  KIND  COUNT  WHAT\n"
            "lab        Job   2      to be resumed\n"
            "lab        Pod   1      its gate to be taken away\n"
            "\nThis is a preview, nothing has been changed. --yes does it\n");
  EXPECT_FALSE(report.leaves());
  report.really = true;
  EXPECT_THAT(Text(report, false, false),
              AllOf(HasSubstr("2      resumed\n"), Not(HasSubstr("preview"))));
}

TEST(ReleaseText, WhatIsLeftIsNamedWithWhatToDo) {
  Released kept = One("Job", "kept", Fate::kKeep);
  kept.release.why = "it is held";
  Released pod = One("Pod", "web-1", Fate::kScheduler);
  pod.release.owner = "ReplicaSet web";
  Released failed = One("Job", "odd", Fate::kResume);
  failed.error = "the API server says no";
  Released held = One("Pod", "bare", Fate::kScheduler);
  held.release.why = "its user holds it";
  Released coming = One("Job", "long", Fate::kComing);
  coming.release.scheduler = true;
  const ReleaseReport report{.really = true, .all = {kept, pod, failed, held, coming}};
  EXPECT_TRUE(report.leaves());
  EXPECT_THAT(Text(report, false, false),
              AllOf(HasSubstr("  lab/kept (Job): it is held\n"),
                    HasSubstr("  lab/web-1 (Pod): of ReplicaSet web\n"),
                    HasSubstr("  lab/odd (Job): the API server says no\n"),
                    HasSubstr("suspend their Jobs:\n  lab/bare (Pod): its user holds it\n"),
                    HasSubstr("or delete them and make them again:\n  lab/long (Job)\n")));
}

TEST(ReleaseText, AResumedJobWhosePodsNameOurSchedulerIsNotDone) {
  ReleaseReport report{.really = true, .all = {One("Job", "gang", Fate::kResume)}};
  EXPECT_FALSE(report.leaves());
  report.all[0].release.scheduler = true;
  EXPECT_TRUE(report.leaves()) << "its pods may be yet to come";
  EXPECT_THAT(Text(report, false, false),
              HasSubstr("or delete them and make them again:\n  lab/gang (Job)\n"));
}

TEST(ReleaseText, OfManyTheFirstAreNamedUnlessAllAreWanted) {
  ReleaseReport report;
  for (int i = 0; i < 25; ++i) {
    report.all.push_back(One("Pod", fmt::format("p{}", i), Fate::kScheduler));
  }
  EXPECT_THAT(Text(report, false, false), HasSubstr("  … and 5 others: -o wide names all\n"));
  EXPECT_THAT(Text(report, true, false),
              AllOf(HasSubstr("lab/p24 (Pod)"), Not(HasSubstr("others:"))));
}

TEST(ReleaseText, WhatIsInTheWayComesFirst) {
  const ReleaseReport report{
      .in_the_way = {{"the webhook fluxqueue holds what is made meanwhile", "x"}}};
  EXPECT_EQ(Text(report, false, false),
            "In the way, so that nothing can be let go of yet:\n"
            "  the webhook fluxqueue holds what is made meanwhile\n  → x\n\n"
            "Fluxqueue holds nothing in this cluster\n");
  EXPECT_TRUE(report.leaves());
}

TEST(ReleaseText, ProgramsAreToldOfEachObject) {
  Released pod = One("Pod", "web-1", Fate::kScheduler);
  pod.release.owner = "ReplicaSet web";
  EXPECT_EQ(Json({.really = true, .all = {pod}}), nlohmann::json::parse(R"({
    "done": true, "inTheWay": [],
    "objects": [{"namespace": "lab", "kind": "Pod", "name": "web-1", "fate": "scheduler", "why": "",
                 "owner": "ReplicaSet web", "podsNameScheduler": false, "error": ""}]})"));
}

}  // namespace
}  // namespace fluxqueue::cli
