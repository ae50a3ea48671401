#include "libs/trace/records.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "libs/base/status_macros.h"

namespace fluxqueue::trace::internal {
namespace {

constexpr std::string_view kBlanks = " \t";
// Seconds: some three thousand years, so that sums and milliseconds stay exact.
constexpr double kMaxSeconds = 1e11;

template <typename T>
bool Parse(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<std::string_view> NextLine(std::string_view* rest) {
  if (rest->empty()) return std::nullopt;
  const size_t end = rest->find('\n');
  std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::vector<std::string_view> SplitAt(std::string_view line, char separator) {
  std::vector<std::string_view> pieces;
  for (size_t end = line.find(separator); end != std::string_view::npos;
       end = line.find(separator)) {
    pieces.push_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  pieces.push_back(line);
  return pieces;
}

std::vector<std::string_view> SplitWords(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kBlanks); begin != std::string_view::npos;
       begin = line.find_first_not_of(kBlanks)) {
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

std::string Record::Text(size_t field, std::string_view name) {
  if (fields_[field].empty()) Fail(field, name, "a text that is not empty");
  return std::string(fields_[field]);
}

int64_t Record::Integer(size_t field, std::string_view name, int64_t min, int64_t max) {
  int64_t value = 0;
  if (Parse(fields_[field], &value) && value >= min && value <= max) return value;
  Fail(field, name, fmt::format("a whole number from {} to {}", min, max));
  return 0;
}

double Record::Seconds(size_t field, std::string_view name, double min) {
  double value = 0;
  if (Parse(fields_[field], &value) && std::isfinite(value) && value >= min &&
      value <= kMaxSeconds) {
    return value;
  }
  Fail(field, name, fmt::format("seconds, a number from {:g} to {:g}", min, kMaxSeconds));
  return 0;
}

absl::Status Record::Error(std::string_view what) const {
  return InvalidArgument("{}:{}: {}", file_, line_, what);
}

void Record::Fail(size_t field, std::string_view name, std::string_view allowed) {
  if (!status_.ok()) return;
  status_ = Error(fmt::format("field {} is \"{}\": allowed is {}", name, fields_[field], allowed));
}

void Arrange(Trace* trace) {
  std::stable_sort(trace->jobs.begin(),
                   trace->jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submit_s < b.submit_s; });
  if (trace->jobs.empty()) return;
  const double first = trace->jobs.front().submit_s;
  for (TraceJob& job : trace->jobs) job.submit_s -= first;
}

}  // namespace fluxqueue::trace::internal
