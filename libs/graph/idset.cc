#include "libs/graph/idset.h"

#include <charconv>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

// No set that anyone means has more digits, and sums of numbers stay small.
constexpr size_t kMaxDigits = 10;

absl::StatusOr<int64_t> ParseId(std::string_view text) {
  int64_t id = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, id);
  if (text.empty() || text.size() > kMaxDigits || text.front() == '-' || result.ec != std::errc() ||
      result.ptr != end) {
    return InvalidArgument("\"{}\" is no number of at most {} digits", text, kMaxDigits);
  }
  return id;
}

}  // namespace

absl::Status ParseIdset(std::string_view text, size_t limit, std::vector<IdRange>* ranges) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const size_t dash = range.find('-');
    ASSIGN_OR_RETURN(const int64_t first, ParseId(range.substr(0, dash)));
    int64_t last = first;
    if (dash != std::string_view::npos) {
      ASSIGN_OR_RETURN(last, ParseId(range.substr(dash + 1)));
    }
    if (last < first) return InvalidArgument("the range \"{}\" runs backwards", range);
    if (ranges->size() >= limit) return InvalidArgument("more than {} ranges", limit);
    ranges->emplace_back(first, last);
    if (comma == std::string_view::npos) return absl::OkStatus();
    text.remove_prefix(comma + 1);
  }
}

std::string FormatIdset(const std::vector<int64_t>& ids) {
  std::string text;
  for (size_t i = 0; i < ids.size();) {
    size_t last = i;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += fmt::format("{}", ids[i]);
    if (last > i) text += fmt::format("-{}", ids[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace fluxqueue::graph
