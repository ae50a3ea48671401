#include <set>
#include <string>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/find_criteria.h"
#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {
namespace {

using graph::FindCriteria;

const graph::Labels kProperties = {{"ssd", ""}};
const std::set<uint64_t> kAllocations = {1};
const std::set<uint64_t> kReservations = {2};
const std::set<uint64_t> kPassing = {1, 2};

bool Matches(const FindCriteria& criteria, bool on) {
  return criteria.Matches({.name = "node7",
                           .down = on,
                           .allocated = on,
                           .reserved = !on,
                           .sums_up = on,
                           .properties = kProperties,
                           .allocations = kAllocations,
                           .reservations = kReservations,
                           .passing = kPassing});
}

// Where it parses, which limits may forbid, it means the same.
void CheckSame(const FindCriteria& criteria, const std::string& text) {
  const auto same = FindCriteria::Parse(text);
  if (!same.ok()) {
    CHECK(Message(same.status()).find("deeper than") != std::string::npos ||
              Message(same.status()).find("more than") != std::string::npos,
          "{}",
          Message(same.status()));
    return;
  }
  for (const bool on : {false, true})
    CHECK(Matches(*same, on) == Matches(criteria, on), "{}", text);
}

}  // namespace

void FuzzFindCriteria(std::string_view text) {
  const auto criteria = FindCriteria::Parse(text);
  if (!criteria.ok()) {
    CHECK(absl::IsInvalidArgument(criteria.status()), "{}", Message(criteria.status()));
    CHECK(Message(criteria.status()).starts_with("criteria: "));
    return;
  }
  CheckSame(*criteria, fmt::format("({})", text));
  CheckSame(*criteria, fmt::format("({}) and ({})", text, text));
  CheckSame(*criteria, fmt::format("({})or({})", text, text));
}

}  // namespace fluxqueue::fuzz
