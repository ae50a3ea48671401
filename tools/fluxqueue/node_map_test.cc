#include "tools/fluxqueue/node_map.h"

#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

NodeView Node(const std::string& name, int64_t ours, const std::string& queue) {
  NodeView node;
  node.name = name;
  node.state = "up";
  node.queue = queue;
  node.allocatable = {{"cpu", 8000}};
  if (ours > 0) node.ours = {{"cpu", ours}};
  return node;
}

TEST(NodeMapTest, ACellIsAsFullAsItsNode) {
  std::vector<NodeView> nodes = {
      Node("n1", 8000, "a"), Node("n2", 4000, "a"), Node("n3", 500, "b"), Node("n4", 0, "")};
  nodes.push_back(Node("n5", 0, ""));
  nodes.back().state = "cordoned";
  nodes.push_back(Node("n6", 8000, "a"));
  nodes.back().state = "not ready";
  EXPECT_EQ(DrawNodeMap(nodes, 80, false),
            "█▅▁·=x\n"
            "6 nodes: █ a 3   █ b 1   · empty 1   = cordoned 1   x not ready 1\n");
}

TEST(NodeMapTest, ARackIsARowAndAQueueAColour) {
  std::vector<NodeView> nodes = {Node("n1", 8000, "a"), Node("n2", 8000, "b")};
  nodes[0].place = {"zone z", "rack r1"};
  nodes[1].place = {"zone z", "rack r2"};
  EXPECT_EQ(DrawNodeMap(nodes, 80, true),
            "zone z/rack r1  \033[32m█\033[0m\n"
            "zone z/rack r2  \033[34m█\033[0m\n"
            "2 nodes: \033[32m█\033[0m a 1   \033[34m█\033[0m b 1\n");
}

TEST(NodeMapTest, LongRowsAreBroken) {
  const std::vector<NodeView> nodes(25, Node("n", 8000, "a"));
  EXPECT_EQ(DrawNodeMap(nodes, 20, false), "████████████████████\n█████\n25 nodes: █ a 25\n");
}

}  // namespace
}  // namespace fluxqueue::cli
