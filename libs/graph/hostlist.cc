#include "libs/graph/hostlist.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "libs/base/status_macros.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {
namespace {

// "08" of "n[08-10]": at most this many digits, so that numbers and widths stay small.
constexpr size_t kMaxDigits = 9;
// DNS allows 253.
constexpr size_t kMaxHostBytes = 255;

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

absl::Status ParseNumber(std::string_view text, uint32_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (text.empty() || text.size() > kMaxDigits || error != std::errc() ||
      end != text.data() + text.size()) {
    return InvalidArgument("\"{}\" is no number of at most {} digits", text, kMaxDigits);
  }
  return absl::OkStatus();
}

struct Range {
  uint32_t first = 0;
  uint32_t last = 0;
  size_t width = 0;
};

// A stretch of a name, and the numbers that may stand behind it; none at the name's end.
struct Part {
  std::string_view literal;
  std::vector<Range> ranges = {};
};

// "7", "1-3".
absl::StatusOr<Range> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const std::string_view first = text.substr(0, dash);
  Range range{.width = first.size()};
  RETURN_IF_ERROR(ParseNumber(first, &range.first));
  range.last = range.first;
  if (dash != std::string_view::npos) {
    RETURN_IF_ERROR(ParseNumber(text.substr(dash + 1), &range.last));
  }
  if (range.last < range.first) return InvalidArgument("the range \"{}\" runs backwards", text);
  return range;
}

absl::StatusOr<std::vector<Range>> ParseRanges(std::string_view text) {
  std::vector<Range> ranges;
  while (true) {
    const size_t comma = text.find(',');
    ASSIGN_OR_RETURN(const Range range, ParseRange(text.substr(0, comma)));
    ranges.push_back(range);
    if (comma == std::string_view::npos) return ranges;
    text.remove_prefix(comma + 1);
  }
}

// The next name with its brackets, cut off the front of `text` with the comma behind it.
std::string_view TakeElement(std::string_view* text) {
  size_t end = 0;
  bool inside = false;
  while (end < text->size() && (inside || (*text)[end] != ',')) {
    if ((*text)[end] == '[') inside = true;
    if ((*text)[end] == ']') inside = false;
    ++end;
  }
  const std::string_view element = text->substr(0, end);
  text->remove_prefix(end < text->size() ? end + 1 : end);
  return element;
}

absl::StatusOr<std::vector<Part>> ParseElement(std::string_view element) {
  std::vector<Part> parts;
  while (!element.empty()) {
    const size_t open = element.find('[');
    Part part{.literal = element.substr(0, open)};
    if (part.literal.find(']') != std::string_view::npos) {
      return InvalidArgument("a \"]\" too many");
    }
    if (!std::all_of(part.literal.begin(), part.literal.end(), IsHostCharacter)) {
      return InvalidArgument("a host name has letters, digits, \"-\", \".\" and \"_\" only");
    }
    size_t close = std::string_view::npos;
    if (open != std::string_view::npos) {
      close = element.find(']', open);
      if (close == std::string_view::npos) return InvalidArgument("a \"[\" without its \"]\"");
      ASSIGN_OR_RETURN(part.ranges, ParseRanges(element.substr(open + 1, close - open - 1)));
    }
    parts.push_back(std::move(part));
    element.remove_prefix(close == std::string_view::npos ? element.size() : close + 1);
  }
  return parts;
}

// Names and their number multiply; both are known before the first is made.
absl::StatusOr<HostlistSize> SizeOf(std::span<const Part> parts, size_t limit, size_t left) {
  uint64_t names = 1;
  size_t bytes = 0;
  for (const Part& part : parts) {
    bytes += part.literal.size();
    uint64_t numbers = 0;
    size_t digits = 0;
    for (const Range& range : part.ranges) {
      numbers += range.last - range.first + 1;
      digits = std::max({digits, range.width, fmt::formatted_size("{}", range.last)});
    }
    bytes += digits;
    if (!part.ranges.empty()) names *= numbers;
    if (names > left) return InvalidArgument("more than {} hosts", limit);
    if (bytes > kMaxHostBytes) {
      return InvalidArgument("a host name has at most {} bytes", kMaxHostBytes);
    }
  }
  return HostlistSize{names, names * bytes};
}

// Takes the text apart: `take` gets each element, its parts and its size. `names`: that there are
// already.
template <typename Take>
absl::Status ForEachElement(std::string_view text, size_t limit, size_t names, Take take) {
  if (text.empty()) return InvalidArgument("a hostlist names at least one host");
  const bool ends_in_comma = text.back() == ',';
  while (!text.empty()) {
    const std::string_view element = TakeElement(&text);
    if (element.empty() || ends_in_comma) return InvalidArgument("a comma without a host");
    ASSIGN_OR_RETURN(const std::vector<Part> parts, ParseElement(element));
    ASSIGN_OR_RETURN(const HostlistSize size, SizeOf(parts, limit, limit - std::min(limit, names)));
    names += size.names;
    take(element, parts, size);
  }
  return absl::OkStatus();
}

// Whether one of the ranges ("1-3,07") writes a number so.
bool IsWritten(std::string_view ranges, std::string_view digits) {
  uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  while (true) {
    const size_t comma = ranges.find(',');
    const Range range = *ParseRange(ranges.substr(0, comma));
    const bool has_width =
        digits.size() == range.width || (digits.size() > range.width && digits.front() != '0');
    if (has_width && range.first <= number && number <= range.last) return true;
    if (comma == std::string_view::npos) return false;
    ranges.remove_prefix(comma + 1);
  }
}

// Ways to take the name apart are tried in turn. Each begins a name that the pattern has, and these
// are counted: so there are not many. REQUIRES: ParseElement has taken the pattern.
bool IsNamedBy(std::string_view pattern, std::string_view name) {
  const size_t open = pattern.find('[');
  const std::string_view literal = pattern.substr(0, open);
  if (!name.starts_with(literal)) return false;
  name.remove_prefix(literal.size());
  if (open == std::string_view::npos) return name.empty();
  const size_t close = pattern.find(']', open);
  const std::string_view ranges = pattern.substr(open + 1, close - open - 1);
  const std::string_view rest = pattern.substr(close + 1);
  for (size_t digits = 1; digits <= std::min(kMaxDigits, name.size()); ++digits) {
    if (!IsDigit(name[digits - 1])) return false;
    if (IsWritten(ranges, name.substr(0, digits)) && IsNamedBy(rest, name.substr(digits))) {
      return true;
    }
  }
  return false;
}

// Appends `name` with all that `parts` make of it.
void Append(std::span<const Part> parts, const std::string& name, std::vector<std::string>* hosts) {
  if (parts.empty()) {
    hosts->push_back(name);
    return;
  }
  const Part& part = parts.front();
  if (part.ranges.empty()) hosts->push_back(fmt::format("{}{}", name, part.literal));
  for (const Range& range : part.ranges) {
    for (uint32_t number = range.first; number <= range.last; ++number) {
      Append(parts.subspan(1),
             fmt::format("{}{}{:0{}}", name, part.literal, number, range.width),
             hosts);
    }
  }
}

}  // namespace

absl::Status MeasureHostlist(std::string_view text, size_t limit, HostlistSize* size) {
  return ForEachElement(text, limit, size->names, [size](auto, auto&, const HostlistSize& more) {
    size->names += more.names;
    size->bytes += more.bytes;
  });
}

absl::Status ExpandHostlist(std::string_view text, size_t limit, std::vector<std::string>* hosts) {
  return ForEachElement(text, limit, hosts->size(), [hosts](auto, const auto& parts, auto&) {
    Append(parts, "", hosts);
  });
}

absl::Status HostSet::Add(std::string_view text, size_t limit) {
  return ForEachElement(
      text, limit, size_, [this](std::string_view element, auto&, const HostlistSize& size) {
        auto& elements = element.find('[') == std::string_view::npos ? names_ : patterns_;
        elements.emplace_back(element);
        size_ += size.names;
      });
}

void HostSet::Finish() {
  std::sort(names_.begin(), names_.end());
  names_.shrink_to_fit();
  patterns_.shrink_to_fit();
}

bool HostSet::Contains(std::string_view name) const {
  return std::binary_search(names_.begin(), names_.end(), name) ||
         std::any_of(patterns_.begin(), patterns_.end(), [name](const std::string& pattern) {
           return IsNamedBy(pattern, name);
         });
}

std::string FormatHostlist(const std::vector<std::string>& hosts) {
  // By what stands before the number, and by how many digits a number with leading zeros has.
  std::map<std::pair<std::string, size_t>, std::set<int64_t>> groups;
  std::set<std::string> unnumbered;
  for (const std::string& host : hosts) {
    size_t digits = 0;
    while (digits < kMaxDigits && digits < host.size() && IsDigit(host[host.size() - digits - 1])) {
      ++digits;
    }
    if (digits == 0) {
      unnumbered.insert(host);
      continue;
    }
    const std::string prefix = host.substr(0, host.size() - digits);
    const std::string number = host.substr(host.size() - digits);
    const bool padded = number.front() == '0' && digits > 1;
    groups[{prefix, padded ? digits : 0}].insert(std::stoll(number));
  }
  std::vector<std::string> parts(unnumbered.begin(), unnumbered.end());
  for (const auto& [group, numbers] : groups) {
    const auto& [prefix, width] = group;
    std::string ranges;
    for (auto at = numbers.begin(); at != numbers.end();) {
      const int64_t first = *at;
      int64_t last = first;
      for (++at; at != numbers.end() && *at == last + 1; ++at) last = *at;
      ranges += fmt::format("{}{:0{}}", ranges.empty() ? "" : ",", first, width);
      if (last > first) ranges += fmt::format("-{:0{}}", last, width);
    }
    parts.push_back(numbers.size() == 1 ? prefix + ranges : fmt::format("{}[{}]", prefix, ranges));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace fluxqueue::graph
