#include "libs/kubernetes/requests.h"

#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::kubernetes {
namespace {

Container Asks(Amounts requests, bool sidecar = false) {
  Container container;
  container.requests = std::move(requests);
  container.sidecar = sidecar;
  return container;
}

TEST(EffectiveRequests, AreCountedAsKubeSchedulerCounts) {
  struct Row {
    const char* what;
    std::vector<Container> containers;
    std::vector<Container> init;
    Amounts expected;  // without "pods"
  };
  const bool sidecar = true;
  const Row rows[] = {
      {"nothing asked", {Asks({})}, {}, {}},
      {"containers add up",
       {Asks({{"cpu", 100}}), Asks({{"cpu", 200}, {"memory", 5}})},
       {},
       {{"cpu", 300}, {"memory", 5}}},
      {"a smaller init step is covered",
       {Asks({{"cpu", 300}})},
       {Asks({{"cpu", 200}})},
       {{"cpu", 300}}},
      {"a larger init step counts", {Asks({{"cpu", 300}})}, {Asks({{"cpu", 500}})}, {{"cpu", 500}}},
      {"init steps do not add up",
       {Asks({{"cpu", 1}})},
       {Asks({{"cpu", 5}}), Asks({{"cpu", 4}})},
       {{"cpu", 5}}},
      {"by resource",
       {Asks({{"cpu", 3}, {"memory", 1}})},
       {Asks({{"cpu", 1}, {"memory", 9}})},
       {{"cpu", 3}, {"memory", 9}}},
      {"sidecars run beside the containers",
       {Asks({{"cpu", 300}})},
       {Asks({{"cpu", 50}}, sidecar)},
       {{"cpu", 350}}},
      {"a step has the sidecars before it",
       {Asks({{"cpu", 100}})},
       {Asks({{"cpu", 50}}, sidecar), Asks({{"cpu", 200}})},
       {{"cpu", 250}}},
      {"but not those behind it",
       {Asks({{"cpu", 100}})},
       {Asks({{"cpu", 200}}), Asks({{"cpu", 50}}, sidecar)},
       {{"cpu", 200}}},
      {"any resource is carried; 0 is nothing",
       {Asks({{"example.com/fpga", 2}, {"hugepages-2Mi", 4}, {"nvidia.com/gpu", 0}})},
       {},
       {{"example.com/fpga", 2}, {"hugepages-2Mi", 4}}},
  };
  for (const Row& row : rows) {
    PodSpec pod;
    pod.containers = row.containers;
    pod.init_containers = row.init;
    Amounts expected = row.expected;
    expected["pods"] = 1;
    EXPECT_EQ(EffectiveRequests(pod), expected) << row.what;
  }
}

TEST(EffectiveRequests, PodLevelReplacesAndOverheadAdds) {
  PodSpec pod;
  pod.containers = {Asks({{"cpu", 300}, {"memory", 10}, {"nvidia.com/gpu", 1}})};
  pod.pod_requests = {{"cpu", 200}, {"nvidia.com/gpu", 7}};  // the last is no pod-level resource
  pod.overhead = {{"cpu", 50}, {"memory", 1}};
  EXPECT_EQ(EffectiveRequests(pod),
            (Amounts{{"cpu", 250}, {"memory", 11}, {"nvidia.com/gpu", 1}, {"pods", 1}}));
}

// As NodePorts of kube-scheduler counts them: of containers and sidecars.
TEST(EffectiveRequests, HostPortsAreOneOfANode) {
  PodSpec pod;
  pod.containers.resize(2);
  pod.containers[0].host_ports = {HostPortResource(80, "TCP"), HostPortResource(53, "UDP")};
  pod.containers[1].host_ports = {HostPortResource(80, "TCP")};
  pod.init_containers.resize(2);
  pod.init_containers[0].host_ports = {HostPortResource(81, "SCTP")};
  pod.init_containers[1].host_ports = {HostPortResource(82, "TCP")};
  pod.init_containers[1].sidecar = true;
  EXPECT_EQ(
      EffectiveRequests(pod),
      (Amounts{
          {"hostport-53-udp", 1}, {"hostport-80-tcp", 1}, {"hostport-82-tcp", 1}, {"pods", 1}}));
}

TEST(CompleteTemplate, FillsInTheApiServersOrder) {
  TemplateContext context;
  LimitRange range;
  range.default_requests = {{"cpu", 100}, {"memory", 64}};
  range.default_limits = {{"cpu", 900}};
  context.Add(range);
  LimitRange second;
  second.default_requests = {{"cpu", 1}};
  context.Add(second);
  PodSpec pod;
  pod.containers = {Asks({{"memory", 5}}), Asks({})};
  pod.containers[0].limits = {{"nvidia.com/gpu", 2}, {"memory", 8}};
  pod.init_containers = {Asks({})};
  const auto complete = CompleteTemplate(pod, context);
  ASSERT_TRUE(complete.ok());
  EXPECT_EQ(complete->containers[0].requests,
            (Amounts{{"cpu", 100}, {"memory", 5}, {"nvidia.com/gpu", 2}}));
  EXPECT_EQ(complete->containers[0].limits.at("cpu"), 900);
  EXPECT_EQ(complete->containers[1].requests, (Amounts{{"cpu", 100}, {"memory", 64}}));
  EXPECT_EQ(complete->init_containers[0].requests, (Amounts{{"cpu", 100}, {"memory", 64}}));
}

TEST(CompleteTemplate, PodLevelLimitsFillPodLevelRequests) {
  PodSpec pod;
  pod.containers = {Asks({{"cpu", 300}, {"hugepages-2Mi", 1}})};
  pod.pod_limits = {{"cpu", 900}, {"memory", 64}, {"hugepages-2Mi", 7}};
  const auto complete = CompleteTemplate(pod, {});
  ASSERT_TRUE(complete.ok());
  EXPECT_EQ(complete->pod_requests, (Amounts{{"cpu", 300}, {"memory", 64}, {"hugepages-2Mi", 7}}));
}

TEST(CompleteTemplate, ClassesGiveOverheadAndPriority) {
  TemplateContext context;
  context.Add(RuntimeClass{"kata", {{"cpu", 250}}});
  context.Add(PriorityClass{"high", 1000, false});
  context.Add(PriorityClass{"usual", 5, true});
  PodSpec pod;
  EXPECT_EQ(CompleteTemplate(pod, context)->priority, 5);
  pod.runtime_class = "kata";
  pod.priority_class = "high";
  const auto complete = CompleteTemplate(pod, context);
  ASSERT_TRUE(complete.ok());
  EXPECT_EQ(complete->overhead, (Amounts{{"cpu", 250}}));
  EXPECT_EQ(complete->priority, 1000);
  pod.priority_class = "hihg";
  EXPECT_EQ(Message(CompleteTemplate(pod, context).status()),
            "spec.priorityClassName: there is no PriorityClass \"hihg\"; there are: high, usual");
  pod.runtime_class = "runq";
  EXPECT_EQ(Message(CompleteTemplate(pod, {}).status()),
            "spec.runtimeClassName: there is no RuntimeClass \"runq\"; there are: none");
}

TEST(CompleteTemplate, ARuntimeClassSaysOnWhichNodesItIs) {
  TemplateContext context;
  context.Add(RuntimeClass{.name = "kata",
                           .overhead = {},
                           .node_selector = {{"kata", "yes"}},
                           .tolerations = {{"kata", "Exists", "", "NoSchedule"}}});
  PodSpec pod;
  pod.runtime_class = "kata";
  pod.node_selector = {{"zone", "a"}};
  pod.tolerations = {{"gpu", "Exists", "", ""}};
  const auto complete = CompleteTemplate(pod, context);
  ASSERT_TRUE(complete.ok());
  EXPECT_EQ(complete->node_selector, (StringMap{{"kata", "yes"}, {"zone", "a"}}));
  ASSERT_EQ(complete->tolerations.size(), 2U);
  EXPECT_EQ(complete->tolerations[1].key, "kata");
  pod.node_selector["kata"] = "no";
  EXPECT_EQ(Message(CompleteTemplate(pod, context).status()),
            "spec.nodeSelector: kata is \"no\"; allowed with RuntimeClass \"kata\" is its own, "
            "\"yes\"");
}

TEST(Excess, NamesWhatIsLarger) {
  const Amounts slot = {{"cpu", 1500}, {"memory", 3 << 20}};
  EXPECT_FALSE(Excess(slot, slot));
  EXPECT_FALSE(Excess({{"cpu", 1}}, slot));
  EXPECT_EQ(Excess({{"cpu", 2000}, {"memory", 4 << 20}, {"x/y", 1}}, slot),
            "cpu 2 > 1500m, memory 4Mi > 3Mi, x/y 1 > 0");
}

}  // namespace
}  // namespace fluxqueue::kubernetes
