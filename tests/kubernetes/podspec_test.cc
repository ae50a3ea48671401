// k8s/PODSPEC.md says of each field of the API what becomes of it, and of no other: a new field of
// Kubernetes is one to decide about.
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "tests/kubernetes/kube_scheduler.h"

namespace fluxqueue::kubernetes_test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kPage = FLUXQUEUE_SOURCE_DIR "/k8s/PODSPEC.md";

struct Page {
  std::set<std::string> words;                         // that the first table explains
  std::map<std::string, std::set<std::string>> types;  // their fields, by the heading of the table
  std::vector<std::string> problems;
};

void ReadFields(const std::string& type, const std::string& row, Page* page) {
  static const std::regex kRow("\\| ((?:`\\w+`(?:, )?)+) \\| ([a-z ]+) \\|.*");
  static const std::regex kField("`(\\w+)`");
  std::smatch parts;
  if (!std::regex_match(row, parts, kRow) || !page->words.contains(parts[2])) {
    page->problems.push_back(fmt::format("{}: no row that says what becomes of a field", row));
    return;
  }
  const std::string names = parts[1];
  for (std::sregex_iterator field(names.begin(), names.end(), kField), end; field != end; ++field) {
    if (page->types[type].insert((*field)[1]).second) continue;
    page->problems.push_back(fmt::format("{}.{} stands twice", type, (*field)[1].str()));
  }
}

Page ReadPage() {
  static const std::regex kHeading("##+ (\\w+)");
  static const std::regex kWord("\\| ([a-z ]+) \\|.*");
  Page page;
  std::ifstream file(kPage);
  std::string type;
  for (std::string line; std::getline(file, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, kHeading)) {
      type = parts[1];
    } else if (!line.starts_with("| ") || line == "| field | what | |") {
      continue;
    } else if (!type.empty()) {
      ReadFields(type, line, &page);
    } else if (std::regex_match(line, parts, kWord) && parts[1] != "word") {
      page.words.insert(parts[1]);
    }
  }
  return page;
}

// All that is wrong with the page.
std::vector<std::string> Problems(Page page, const nlohmann::json& fields) {
  for (const auto& [type, names] : fields.items()) {
    std::set<std::string>& said = page.types[type];
    for (const std::string name : names) {
      if (said.erase(name) == 1) continue;
      page.problems.push_back(
          fmt::format("{}.{} has no row: decide what becomes of it", type, name));
    }
  }
  for (const auto& [type, names] : page.types) {
    for (const std::string& name : names) {
      page.problems.push_back(fmt::format("the API has no {}.{}", type, name));
    }
  }
  return page.problems;
}

TEST(PodSpecPage, SaysWhatBecomesOfEachField) {
  const auto fields = ApiFields();
  ASSERT_TRUE(fields.ok()) << Message(fields.status());
  const Page page = ReadPage();
  EXPECT_THAT(page.words, SizeIs(8)) << kPage;
  EXPECT_THAT(Problems(page, *fields), IsEmpty()) << kPage;
}

}  // namespace
}  // namespace fluxqueue::kubernetes_test
