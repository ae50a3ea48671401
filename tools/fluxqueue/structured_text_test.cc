#include "tools/fluxqueue/structured_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

TEST(StructuredTextTest, YamlReadsAsWritten) {
  const json value = json::parse(
      R"({"jobs": [{"id": "a-1", "nodes": ["n1", "n2"], "ended": false}, {"id": "12"}], "total": 2,
          "none": [], "text": "a: \"c\""})");
  EXPECT_EQ(YamlText(value),
            "jobs:\n"
            "  - ended: false\n"
            "    id: a-1\n"
            "    nodes:\n"
            "      - n1\n"
            "      - n2\n"
            "  - id: \"12\"\n"
            "none: []\n"
            "text: \"a: \\\"c\\\"\"\n"
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

TEST(StructuredTextTest, LinesStandAsTheyAre) {
  const json value = {
      {"files", {{"a.yaml", "kafka:\n  brokers: x\n\nend: 1\n"}, {"none", "no\nbreak"}}},
      {"lists", {"é\n\n\n", "b"}}};
  EXPECT_EQ(YamlText(value),
            "files:\n"
            "  a.yaml: |\n"
            "    kafka:\n"
            "      brokers: x\n"
            "\n"
            "    end: 1\n"
            "  none: |-\n"
            "    no\n"
            "    break\n"
            "lists:\n"
            "  - |+\n"
            "    é\n"
            "\n"
            "\n"
            "  - b\n");
}

void ExpectReadAsItWas(const std::string& text) {
  const json lists = json::array({json::array({text, "next"})});
  const YAML::Node read = YAML::Load(YamlText({{"in", lists}, {"key", text}}));
  EXPECT_EQ(read["key"].as<std::string>(), text) << json(text);
  EXPECT_EQ(read["in"][0][0].as<std::string>(), text) << json(text);
  EXPECT_EQ(read["in"][0][1].as<std::string>(), "next") << json(text);
}

TEST(StructuredTextTest, LinesAreReadAsTheyWere) {
  const std::vector<std::string> parts = {
      "",    " ",   "a",  "  a", "a  ",    "\ta",    "a\t",    "#",    "- a",  "a: b", "---",
      "...", "a\r", "\"", "\\",  "\u0085", "\u2028", "\ufeff", "\x7f", "\x01", "%",    "é"};
  for (const std::string& first : parts) {
    for (const std::string& middle : parts) {
      for (const std::string& last : parts) {
        ExpectReadAsItWas(fmt::format("{}\n{}\n{}", first, middle, last));
      }
    }
  }
  EXPECT_EQ(YamlText({{"key", "a\n\xff"}}), "key: \"a\\n\ufffd\"\n");
}

}  // namespace
}  // namespace fluxqueue::cli
