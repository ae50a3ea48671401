#include "tools/fluxqueue/doctor.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

const char* Word(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kWarn:
      return "warn";
    case Health::kFail:
      return "fail";
  }
  return "";
}

Colour Look(Health health) {
  if (health == Health::kOk) return Colour::kGreen;
  return health == Health::kWarn ? Colour::kYellow : Colour::kRed;
}

}  // namespace

void Findings::Ok(std::string about, std::string finding) {
  findings_.push_back({Health::kOk, std::move(about), std::move(finding)});
}

void Findings::Warn(std::string about, std::string finding, std::string todo) {
  findings_.push_back({Health::kWarn, std::move(about), std::move(finding), std::move(todo)});
}

void Findings::Fail(std::string about, std::string finding, std::string todo) {
  findings_.push_back({Health::kFail, std::move(about), std::move(finding), std::move(todo)});
}

bool Findings::healthy() const {
  return std::none_of(findings_.begin(), findings_.end(), [](const Finding& finding) {
    return finding.health == Health::kFail;
  });
}

std::string Findings::Text(bool colour) const {
  size_t width = 0;
  for (const Finding& finding : findings_) width = std::max(width, finding.about.size());
  std::string text;
  for (const Finding& finding : findings_) {
    text += fmt::format("{}{}  {:<{}}  {}\n",
                        Paint(Word(finding.health), Look(finding.health), colour),
                        finding.health == Health::kOk ? "  " : "",
                        finding.about,
                        width,
                        finding.finding);
    if (!finding.todo.empty()) text += fmt::format("      {:{}}  → {}\n", "", width, finding.todo);
  }
  return text;
}

nlohmann::json Findings::ToJson() const {
  nlohmann::json result = {{"healthy", healthy()}, {"findings", nlohmann::json::array()}};
  for (const Finding& finding : findings_) {
    result["findings"].push_back({{"health", Word(finding.health)},
                                  {"about", finding.about},
                                  {"finding", finding.finding},
                                  {"todo", finding.todo}});
  }
  return result;
}

}  // namespace fluxqueue::cli
