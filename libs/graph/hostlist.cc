#include "libs/graph/hostlist.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

// "08" of "n[08-10]": at most this many digits, so that numbers and widths stay small.
constexpr size_t kMaxDigits = 9;

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

// Appends each of `prefixes` with each number of the range ("7", "1-3") behind it.
absl::Status AppendRange(const std::vector<std::string>& prefixes,
                         std::string_view range,
                         size_t limit,
                         std::vector<std::string>* names) {
  const size_t dash = range.find('-');
  const std::string_view first_text = range.substr(0, dash);
  uint32_t first = 0;
  RETURN_IF_ERROR(ParseNumber(first_text, &first));
  uint32_t last = first;
  if (dash != std::string_view::npos) RETURN_IF_ERROR(ParseNumber(range.substr(dash + 1), &last));
  if (last < first) return InvalidArgument("the range \"{}\" runs backwards", range);
  if (names->size() + (uint64_t{last} - first + 1) * prefixes.size() > limit) {
    return InvalidArgument("more than {} hosts", limit);
  }
  for (const std::string& prefix : prefixes) {
    for (uint32_t number = first; number <= last; ++number) {
      names->push_back(fmt::format("{}{:0{}}", prefix, number, first_text.size()));
    }
  }
  return absl::OkStatus();
}

// One bracket's content behind each of `names`.
absl::Status Multiply(std::string_view ranges, size_t limit, std::vector<std::string>* names) {
  std::vector<std::string> product;
  while (true) {
    const size_t comma = ranges.find(',');
    RETURN_IF_ERROR(AppendRange(*names, ranges.substr(0, comma), limit, &product));
    if (comma == std::string_view::npos) break;
    ranges.remove_prefix(comma + 1);
  }
  *names = std::move(product);
  return absl::OkStatus();
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

absl::Status ExpandElement(std::string_view element,
                           size_t limit,
                           std::vector<std::string>* names) {
  *names = {""};
  while (!element.empty()) {
    const size_t open = element.find('[');
    const std::string_view literal = element.substr(0, open);
    if (literal.find(']') != std::string_view::npos) return InvalidArgument("a \"]\" too many");
    if (!std::all_of(literal.begin(), literal.end(), IsHostCharacter)) {
      return InvalidArgument("a host name has letters, digits, \"-\", \".\" and \"_\" only");
    }
    for (std::string& name : *names) name += literal;
    if (open == std::string_view::npos) break;
    const size_t close = element.find(']', open);
    if (close == std::string_view::npos) return InvalidArgument("a \"[\" without its \"]\"");
    RETURN_IF_ERROR(Multiply(element.substr(open + 1, close - open - 1), limit, names));
    element.remove_prefix(close + 1);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ExpandHostlist(std::string_view text, size_t limit, std::vector<std::string>* hosts) {
  if (text.empty()) return InvalidArgument("a hostlist names at least one host");
  const bool ends_in_comma = text.back() == ',';
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view element = TakeElement(&text);
    if (element.empty() || ends_in_comma) return InvalidArgument("a comma without a host");
    RETURN_IF_ERROR(ExpandElement(element, limit, &names));
    if (hosts->size() + names.size() > limit) return InvalidArgument("more than {} hosts", limit);
    for (std::string& name : names) hosts->push_back(std::move(name));
  }
  return absl::OkStatus();
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
