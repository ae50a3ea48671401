#include <set>
#include <string>
#include <vector>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/idset.h"
#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {
namespace {

// The numbers of the ranges, unless there are very many.
std::vector<int64_t> Numbers(const std::vector<graph::IdRange>& ranges) {
  constexpr int64_t kMost = 10'000;
  int64_t left = kMost;
  std::set<int64_t> numbers;
  for (const auto& [first, last] : ranges) {
    left -= last - first + 1;
    if (left < 0) return {};
    for (int64_t id = first; id <= last; ++id) numbers.insert(id);
  }
  return {numbers.begin(), numbers.end()};
}

}  // namespace

void FuzzIdset(std::string_view text) {
  constexpr size_t kLimit = 100;
  std::vector<graph::IdRange> ranges;
  const absl::Status status = graph::ParseIdset(text, kLimit, &ranges);
  CHECK(ranges.size() <= kLimit);
  if (!status.ok()) {
    CHECK(absl::IsInvalidArgument(status), "{}", Message(status));
    return;
  }
  for (const auto& [first, last] : ranges) CHECK(0 <= first && first <= last);
  const std::vector<int64_t> numbers = Numbers(ranges);
  if (numbers.empty()) return;
  const std::string written = graph::FormatIdset(numbers);
  std::vector<graph::IdRange> again;
  const absl::Status read = graph::ParseIdset(written, kLimit, &again);
  CHECK(read.ok(), "{}: {}", Message(read), written);
  CHECK(Numbers(again) == numbers, "{}", written);
}

}  // namespace fluxqueue::fuzz
