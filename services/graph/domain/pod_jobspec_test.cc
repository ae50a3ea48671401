#include "services/graph/domain/pod_jobspec.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/jobspec.h"

namespace fluxqueue::graph_service {
namespace {

using graph::Amount;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

graph::Jobspec Read(const std::string& text) {
  const auto translated = ToPodJobspec(text);
  EXPECT_TRUE(translated.ok()) << translated.status();
  const auto jobspec = graph::ParseJobspec(*translated);
  EXPECT_TRUE(jobspec.ok()) << jobspec.status() << *translated;
  return *jobspec;
}

TEST(PodJobspec, FluxionsWordsBecomeKubernetes) {
  const graph::Jobspec jobspec = Read(R"(version: 9999
resources:
- type: node
  count: 1
  with:
  - type: slot
    count: 3
    label: task
    with:
    - {type: core, count: 2}
    - {type: memory, count: 512, unit: MB}
    - {type: gpu, count: 1}
attributes: {system: {duration: 60}}
tasks:
- {command: [app], slot: task, count: {per_slot: 1}}
)");
  EXPECT_EQ(jobspec.slots, 3u);
  EXPECT_THAT(
      jobspec.groups[0].request,
      ElementsAre(
          Amount{"cpu", 2000}, Amount{"memory", int64_t{512} << 20}, Amount{"nvidia.com/gpu", 1}));
  EXPECT_EQ(jobspec.duration_s, 60);
}

TEST(PodJobspec, KubernetesWordsStay) {
  const graph::Jobspec jobspec = Read(
      R"({"version":1,"resources":[{"type":"rack","count":1,"with":[{"type":"slot","count":2,
          "label":"pod","with":[{"type":"cpu","count":1500},{"type":"memory","count":1024}]}]}],
          "tasks":[{"command":["pod"],"slot":"pod","count":{"per_slot":1}}]})");
  EXPECT_EQ(jobspec.required_level, "rack");
  EXPECT_THAT(jobspec.groups[0].request, ElementsAre(Amount{"cpu", 1500}, Amount{"memory", 1024}));
}

TEST(PodJobspec, SaysWhatItCannotSay) {
  const auto refused = [](const std::string& text) { return Message(ToPodJobspec(text).status()); };
  EXPECT_THAT(refused("resources: [{type: node, count: 4, with: [{type: slot, count: 1}]}]"),
              HasSubstr("resources[0].count: several nodes"));
  EXPECT_THAT(refused("resources: [{type: slot, count: 1, with: [{type: memory, count: 1, "
                      "unit: acre}]}]"),
              HasSubstr("with[0].unit: \"acre\""));
  EXPECT_THAT(refused("resources: [{type: slot, count: 1, with: [{type: core, count: many}]}]"),
              HasSubstr("with[0].count"));
  EXPECT_FALSE(ToPodJobspec("resources: [").ok());
}

}  // namespace
}  // namespace fluxqueue::graph_service
