#include "libs/kubernetes/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/places.h"

namespace fluxqueue::kubernetes {
namespace {

// What the policies keep from users is what the services write.
TEST(Keys, WhatWeRecordIsInTheTable) {
  EXPECT_THAT(RecordedKeys(),
              ::testing::UnorderedElementsAre(kJobIdAnnotation,
                                              kAllocationAnnotation,
                                              kProofAnnotation,
                                              kDevicesAnnotation,
                                              kSuspendedByAnnotation,
                                              kDeadlineAnnotation,
                                              kFencedAnnotation,
                                              kTraceparentAnnotation,
                                              kGroupAnnotation,
                                              kPlacesAnnotation,
                                              kPlaceOfAnnotation,
                                              kAdmittedToAnnotation));
}

// What a service has recorded is no reason to refuse what the user changes.
TEST(Keys, WhatWeWriteIsNoTypingError) {
  StringMap ours = {{std::string(kUserAnnotation), "ann"}, {std::string(kCancelKey), "true"}};
  for (const std::string& key : RecordedKeys()) ours[key] = "x";
  const auto keys = ParseUserKeys({{std::string(kHeldLabel), std::string(kHeldDirect)}}, ours);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_TRUE(keys->cancel);
}

TEST(Duration, IsSecondsOrASum) {
  const std::pair<const char*, int64_t> rows[] = {
      {"0", 0},
      {"90", 90'000},
      {"90s", 90'000},
      {"1h30m", 5'400'000},
      {"500ms", 500},
      {"1m1s1ms", 61'001},
      {"0s", 0},
      {"876000h", 3'153'600'000'000},
  };
  for (const auto& [text, millis] : rows) {
    const auto duration = ParseDuration(text);
    ASSERT_TRUE(duration.ok()) << text;
    EXPECT_EQ(duration->count(), millis) << text;
  }
  for (const char* text : {"",
                           " ",
                           "-1",
                           "1.5h",
                           "h",
                           "1d",
                           "1h30",
                           "30 s",
                           "+5",
                           "1h-5m",
                           "876001h",
                           "99999999999999999999"}) {
    const auto duration = ParseDuration(text);
    ASSERT_FALSE(duration.ok()) << text;
    EXPECT_EQ(
        Message(duration.status()),
        fmt::format(
            "\"{}\" is not a duration: allowed are seconds (\"90\") or a sum of h, m, s and ms "
            "(\"1h30m\", \"90s\"), a century at most; \"0\" means unlimited",
            text));
  }
}

TEST(Topology, Parses) {
  const std::pair<const char*, Topology> rows[] = {
      {"required: rack", {.required = "rack", .preferred = {}}},
      {"preferred:zone", {.required = {}, .preferred = "zone"}},
      {"preferred: rack, required: zone", {.required = "zone", .preferred = "rack"}},
  };
  for (const auto& [text, topology] : rows) {
    const auto parsed = ParseTopology(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, topology) << text;
    EXPECT_EQ(*ParseTopology(FormatTopology(*parsed)), topology) << text;
  }
  for (const char* text : {"",
                           "rack",
                           "required",
                           "required:",
                           "required: a b",
                           "required: rack,",
                           "required: a, required: b",
                           "wanted: rack"}) {
    EXPECT_EQ(Message(ParseTopology(text).status()),
              fmt::format("\"{}\": allowed are \"required: LEVEL\", \"preferred: LEVEL\", or both "
                          "with a comma between them; LEVEL is one of the pool's, such as zone or "
                          "rack",
                          text));
  }
}

TEST(DependsOn, Parses) {
  using scheduling::Condition;
  const std::pair<const char*, std::vector<DependsOn>> rows[] = {
      {"afterok:a", {{Condition::kAfterOk, "a"}}},
      {"afterok:a:b-1.c", {{Condition::kAfterOk, "a"}, {Condition::kAfterOk, "b-1.c"}}},
      {"afterany:a,afternotok:0f7c-11",
       {{Condition::kAfterAny, "a"}, {Condition::kAfterNotOk, "0f7c-11"}}},
  };
  for (const auto& [text, list] : rows) {
    const auto parsed = ParseDependsOn(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, list) << text;
  }
  std::string many = "afterok";
  for (size_t i = 0; i < kMaxDependencies; ++i) many += ":a";
  EXPECT_EQ(ParseDependsOn(many)->size(), kMaxDependencies);
  many += ":a";
  for (const std::string& text : {std::string(),
                                  std::string("a"),
                                  std::string("afterok"),
                                  std::string("afterok:"),
                                  std::string("afterok:a:"),
                                  std::string("afterok::a"),
                                  std::string("afterok:a,"),
                                  std::string(",afterok:a"),
                                  std::string("after:a"),
                                  std::string("afterok:A"),
                                  std::string("afterok:a b"),
                                  std::string("afterok: a"),
                                  many}) {
    EXPECT_EQ(Message(ParseDependsOn(text).status()),
              fmt::format("\"{}\": allowed are up to 64 of CONDITION:JOB with commas between them, "
                          "such as \"afterok:prepare,afterany:collect\"; CONDITION is afterok, "
                          "afterany or afternotok, JOB the name of a workload of the same "
                          "namespace, or its uid",
                          text));
  }
}

TEST(Begin, Parses) {
  EXPECT_EQ(ParseBegin("2026-01-31T12:00:00Z")->At(5), 1'769'860'800'000);
  EXPECT_EQ(ParseBegin("2026-01-31T13:00:00+01:00")->At(5), 1'769'860'800'000);
  EXPECT_EQ(ParseBegin("+1h30m")->At(5), 5'400'005);
  EXPECT_EQ(ParseBegin("+0")->At(5), 5);
  for (const char* text :
       {"", "+", "90", "+1d", "++1", "tomorrow", "2026-01-31", "2026-02-30T12:00:00Z"}) {
    EXPECT_EQ(Message(ParseBegin(text).status()),
              fmt::format("\"{}\" is no time to begin at: allowed are a time such as "
                          "\"2026-01-31T12:00:00Z\", or how long after it was made, such as "
                          "\"+90s\" or \"+1h30m\"",
                          text));
  }
}

TEST(UserKeys, AreTakenFromLabelsAndAnnotations) {
  const auto keys = ParseUserKeys({{"fluxqueue.io/queue", "gpu.a-1"}, {"app", "x"}},
                                  {{"fluxqueue.io/priority", "-7"},
                                   {"fluxqueue.io/duration", "2m"},
                                   {"fluxqueue.io/hold", "true"},
                                   {"fluxqueue.io/topology", "required: rack"},
                                   {"fluxqueue.io/cancel", "false"},
                                   {"fluxqueue.io/job-id", "ours"}});
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->queue, "gpu.a-1");
  EXPECT_EQ(keys->priority, -7);
  EXPECT_EQ(keys->duration, Millis(120'000));
  EXPECT_TRUE(keys->hold);
  EXPECT_EQ(keys->topology->required, "rack");
  EXPECT_FALSE(keys->cancel);
  EXPECT_FALSE(ParseUserKeys({}, {})->queue);
}

TEST(UserKeys, RefusalsNameKeyValueAndWhatIsAllowed) {
  struct Row {
    StringMap labels;
    StringMap annotations;
    const char* error;
  };
  const Row rows[] = {
      {{{"fluxqueue.io/queue", "A B"}},
       {},
       "fluxqueue.io/queue: \"A B\" is not the name of a FluxQueue: allowed are up to 63 of a-z, "
       "0-9, '-' "
       "and '.', beginning and ending with a letter or digit"},
      {{},
       {{"fluxqueue.io/priority", "high"}},
       "fluxqueue.io/priority: \"high\" is not a priority: allowed are whole numbers from "
       "-2147483648 to "
       "2147483647"},
      {{},
       {{"fluxqueue.io/hold", "yes"}},
       "fluxqueue.io/hold: \"yes\": allowed are \"true\" and \"false\""},
      {{},
       {{"fluxqueue.io/ignore-disruptions", "always"}},
       "fluxqueue.io/ignore-disruptions: \"always\": allowed are \"true\" and \"false\""},
      {{{"fluxqueue.io/managed", "no"}},
       {},
       "fluxqueue.io/managed: \"no\": allowed are \"true\" and \"false\""},
      {{{"fluxqueue.io/queue", "a"}},
       {{"fluxqueue.io/queue", "b"}},
       "fluxqueue.io/queue: the label says \"a\", the annotation \"b\"; keep one of them"},
      {{},
       {{"fluxqueue.io/prio", "1"}},
       "fluxqueue.io/prio=\"1\": no such key; known are fluxqueue.io/queue, fluxqueue.io/priority, "
       "fluxqueue.io/duration, fluxqueue.io/topology, fluxqueue.io/depends-on, "
       "fluxqueue.io/begin, fluxqueue.io/min-slots, fluxqueue.io/max-slots, fluxqueue.io/array, "
       "fluxqueue.io/group-name, fluxqueue.io/group-size, fluxqueue.io/growth, "
       "fluxqueue.io/ignore-disruptions, fluxqueue.io/qos, "
       "fluxqueue.io/hold, fluxqueue.io/cancel, fluxqueue.io/retry, "
       "fluxqueue.io/managed"},
      {{},
       {{"fluxqueue.io/exclusive", "true"}},
       "fluxqueue.io/exclusive=\"true\": this version of Fluxqueue cannot honour it; "
       "remove it"},
  };
  for (const Row& row : rows) {
    const auto keys = ParseUserKeys(row.labels, row.annotations);
    ASSERT_FALSE(keys.ok()) << row.error;
    EXPECT_EQ(Message(keys.status()), row.error);
  }
}

TEST(UserKeys, OfAJobWinOverItsTemplates) {
  Job job;
  job.meta.labels = {{"fluxqueue.io/queue", "a"}, {"fluxqueue.io/ignore-disruptions", "false"}};
  job.template_labels = {{"fluxqueue.io/queue", "b"}, {"fluxqueue.io/ignore-disruptions", "true"}};
  job.template_annotations = {{"fluxqueue.io/duration", "5"}, {"fluxqueue.io/cancel", "true"}};
  const auto keys = ParseUserKeys(job);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->queue, "a");
  EXPECT_EQ(keys->duration, Millis(5'000));
  EXPECT_EQ(keys->ignore_disruptions, false);
  EXPECT_FALSE(keys->cancel);
  job.template_annotations["fluxqueue.io/duration"] = "soon";
  EXPECT_TRUE(
      Message(ParseUserKeys(job).status()).starts_with("pod template: fluxqueue.io/duration: "));
}

TEST(SlotName, IsReadBack) {
  EXPECT_EQ(FormatSlotName({1, 0, 3, 16}), "1.0.3/16");
  const auto name = ParseSlotName("1.0.3/16");
  ASSERT_TRUE(name.ok());
  EXPECT_TRUE(name->attempt == 1 && name->part == 0 && name->slot == 3 && name->slots == 16);
  for (const char* text :
       {"", "1", "1.0.3", "1.0.3/", "1.0.16/16", "1.0.3/16x", "a.0.3/4", "1.0.-1/4"}) {
    EXPECT_FALSE(ParseSlotName(text).ok()) << text;
  }
}

}  // namespace
}  // namespace fluxqueue::kubernetes
