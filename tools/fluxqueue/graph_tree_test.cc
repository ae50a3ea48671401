#include "tools/fluxqueue/graph_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::cli {
namespace {

using ::testing::HasSubstr;

NodeView Node(const std::string& name, std::vector<std::string> place, int64_t ours) {
  NodeView node;
  node.name = name;
  node.pool = "default";
  node.state = "up";
  node.place = std::move(place);
  node.allocatable = {{"cpu", 1000}};
  node.ours = {{"cpu", ours}};
  if (ours > 0) node.queue = "batch";
  return node;
}

std::vector<GraphTree> Trees() {
  return BuildTrees({Node("n1", {"zone a", "rack 1"}, 1000),
                     Node("n2", {"zone a", "rack 2"}, 0),
                     Node("n3", {"zone b"}, 500)});
}

TEST(GraphTreeTest, ATreeOfLevels) {
  EXPECT_EQ(TreeText(Trees()[0], true, false),
            "pool default  ██████████░░░░░░░░░░  50 %  3 nodes\n"
            "├─ zone a     ██████████░░░░░░░░░░  50 %  2 nodes\n"
            "│  ├─ rack 1  ████████████████████ 100 %  1 nodes\n"
            "│  │  └─ n1   ████████████████████ 100 %  batch\n"
            "│  └─ rack 2  ░░░░░░░░░░░░░░░░░░░░   0 %  1 nodes\n"
            "│     └─ n2   ░░░░░░░░░░░░░░░░░░░░   0 %\n"
            "└─ zone b     ██████████░░░░░░░░░░  50 %  1 nodes\n"
            "   └─ n3      ██████████░░░░░░░░░░  50 %  batch\n");
}

TEST(GraphTreeTest, ForGraphvizAndAsAPicture) {
  const std::string dot = TreeDot(Trees());
  EXPECT_THAT(dot, HasSubstr("\"pool default/zone a\" -> \"pool default/zone a/rack 1\";"));
  EXPECT_THAT(dot, HasSubstr("label=\"n1\\n100 %\""));
  const std::string svg = TreeSvg(Trees());
  EXPECT_THAT(svg, HasSubstr("<title>n3: up,  50 %</title>"));
  EXPECT_THAT(svg, HasSubstr("zone a: 2 nodes,  50 %"));
  EXPECT_EQ(TreeJson(Trees()[0])["below"][0]["below"][1]["name"], "rack 2");
}

}  // namespace
}  // namespace fluxqueue::cli
