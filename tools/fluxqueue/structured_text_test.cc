#include "tools/fluxqueue/structured_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

TEST(StructuredTextTest, YamlReadsAsWritten) {
  const json value = json::parse(
      R"({"jobs": [{"id": "a-1", "nodes": ["n1", "n2"], "ended": false}, {"id": "12"}], "total": 2,
          "none": [], "text": "a: b\n\"c\""})");
  EXPECT_EQ(YamlText(value),
            "jobs:\n"
            "  - ended: false\n"
            "    id: a-1\n"
            "    nodes:\n"
            "      - n1\n"
            "      - n2\n"
            "  - id: \"12\"\n"
            "none: []\n"
            "text: \"a: b\\n\\\"c\\\"\"\n"
            "total: 2\n");
}

// Words that YAML takes for something else than a text.
TEST(StructuredTextTest, TextsStayTexts) {
  for (const char* text :
       {"yes", "No", "null", "~", "1e3", "0x1", "2024-01-01", "", "- a", "é", "#"}) {
    const YAML::Node read = YAML::Load(YamlText({{"key", text}}));
    EXPECT_EQ(read["key"].as<std::string>(), text);
    EXPECT_NE(YamlText({{"key", text}}).find('"'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace fluxqueue::cli
