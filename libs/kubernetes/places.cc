#include "libs/kubernetes/places.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <absl/strings/ascii.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/kubernetes/group_table.h"
#include "libs/kubernetes/json_path.h"

namespace fluxqueue::kubernetes {
namespace {

using nlohmann::json;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kLeastOverheadMiB = 384;

// False: it is no such number, or has something behind it.
template <typename Number>
bool ParseWhole(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// False: there is more than a pod may ask for, or it is no quantity.
bool AddAmount(const std::string& resource, std::string_view text, Amounts* amounts) {
  const absl::StatusOr<int64_t> amount = ParseQuantity(resource, text);
  if (!amount.ok() || *amount > kMostAmount) return false;
  if (*amount != 0) (*amounts)[resource] = *amount;
  return true;
}

// Unset: it is neither text nor a whole number.
std::optional<std::string> TextAt(const json& object, const char* path, const char* otherwise) {
  const json* value = At(object, path);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  return value->is_number_integer() ? std::optional(value->dump()) : std::nullopt;
}

// As Spark writes memory: in MiB, or with a unit ("512m", "4g", "4gb"), all of 1024s. Less than a
// MiB is none.
std::optional<int64_t> MebibytesOf(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 6> kUnits = {
      {{"", 20}, {"k", 10}, {"m", 20}, {"g", 30}, {"t", 40}, {"p", 50}}};
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  const std::string lower = absl::AsciiStrToLower({text.data(), text.size()});
  std::string_view unit = std::string_view(lower).substr(digits.size());
  int64_t number = 0;
  if (!ParseWhole(digits, &number)) return std::nullopt;
  if (unit == "b") return number / kMiB;
  if (unit.size() == 2 && unit.ends_with('b')) unit.remove_suffix(1);
  const auto* found = std::find_if(
      kUnits.begin(), kUnits.end(), [unit](const auto& known) { return known.first == unit; });
  if (found == kUnits.end() || number > kMostAmount >> found->second) return std::nullopt;
  return (number << found->second) / kMiB;
}

std::optional<double> OverheadFactor(const json& application) {
  const std::string type = TextAt(application, "/spec/type", "").value_or("");
  const json* given = At(application, "/spec/memoryOverheadFactor");
  if (given == nullptr) return type == "Python" || type == "R" ? 0.4 : 0.1;
  double factor = 0;
  const std::string text = given->is_string() ? given->get<std::string>() : given->dump();
  constexpr double kMost = 1000;
  if (!ParseWhole(text, &factor) || !(factor > 0 && factor < kMost)) return std::nullopt;
  return factor;
}

std::optional<int64_t> ExecutorMebibytes(const json& application) {
  const auto memory = TextAt(application, "/spec/executor/memory", "1g");
  const std::optional<int64_t> heap = memory ? MebibytesOf(*memory) : std::nullopt;
  if (!heap) return std::nullopt;
  if (At(application, "/spec/executor/memoryOverhead") != nullptr) {
    const auto given = TextAt(application, "/spec/executor/memoryOverhead", "");
    const std::optional<int64_t> overhead = given ? MebibytesOf(*given) : std::nullopt;
    return overhead ? std::optional(*heap + *overhead) : std::nullopt;
  }
  const std::optional<double> factor = OverheadFactor(application);
  if (!factor) return std::nullopt;
  const auto overhead = static_cast<int64_t>(*factor * static_cast<double>(*heap));
  return *heap + std::max(kLeastOverheadMiB, overhead);
}

}  // namespace

std::string Format(const Places& places) {
  std::string record = fmt::format("{}", places.count);
  for (const auto& [resource, amount] : places.requests) {
    if (resource == "pods") continue;
    record += record.find(' ') == record.npos ? ' ' : ',';
    record += fmt::format("{}={}", resource, FormatQuantity(resource, amount));
  }
  return record;
}

std::optional<Places> ParsePlaces(std::string_view record) {
  Places places;
  const size_t space = std::min(record.find(' '), record.size());
  if (!ParseWhole(record.substr(0, space), &places.count)) return std::nullopt;
  if (places.count < 1 || places.count > kMaxGroupPods) return std::nullopt;
  record.remove_prefix(std::min(space + 1, record.size()));
  while (!record.empty()) {
    const std::string_view amount = record.substr(0, record.find(','));
    record.remove_prefix(std::min(amount.size() + 1, record.size()));
    const std::string resource(amount.substr(0, amount.find('=')));
    if (resource != "cpu" && resource != "memory") return std::nullopt;
    const size_t value = std::min(resource.size() + 1, amount.size());
    if (!AddAmount(resource, amount.substr(value), &places.requests)) return std::nullopt;
  }
  places.requests["pods"] = 1;
  return places;
}

std::optional<Places> SparkExecutors(const json& application) {
  const auto count = TextAt(application, "/spec/executor/instances", "1");
  const char* cores =
      At(application, "/spec/executor/coreRequest") != nullptr ? "coreRequest" : "cores";
  const auto cpu = TextAt(application, fmt::format("/spec/executor/{}", cores).c_str(), "1");
  const std::optional<int64_t> memory = ExecutorMebibytes(application);
  if (!count || !cpu || !memory) return std::nullopt;
  return ParsePlaces(fmt::format("{} cpu={},memory={}Mi", *count, *cpu, *memory));
}

}  // namespace fluxqueue::kubernetes
