#include "libs/graph/expected_work.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/graph/fnv.h"
#include "libs/graph/fragmentation.h"

namespace fluxqueue::graph {
namespace {

constexpr size_t kMaxShapes = 64;

std::string KeyOf(const Jobspec& jobspec, const SlotGroup& slots) {
  std::string key;
  for (const Amount& amount : slots.request) {
    key += fmt::format("{}:{}={} ", amount.resource.size(), amount.resource, amount.amount);
  }
  return key + jobspec.constraint_signature;
}

}  // namespace

bool AsksForGpus(const Amounts& request) {
  return std::any_of(request.begin(), request.end(), [](const Amount& amount) {
    return amount.resource == kGpuMilli || IsWholeGpus(amount.resource);
  });
}

void ExpectedWork::Add(const Jobspec& jobspec, int64_t jobs) {
  for (const SlotGroup& slots : jobspec.groups) {
    if (!AsksForGpus(slots.request)) continue;
    const auto entry = shapes_.try_emplace(KeyOf(jobspec, slots)).first;
    WorkloadShape& shape = entry->second;
    shape.amounts = slots.request;
    shape.constraint = jobspec.constraint;
    const auto before = static_cast<int64_t>(shape.count);
    const int64_t count = before + jobs * static_cast<int64_t>(slots.slots);
    CHECK(count >= 0, "{} slots are expected", count);
    shape.count = static_cast<uint64_t>(count);
    changed_ = changed_ || QuantisedCount(shape.count) != QuantisedCount(before);
    if (count == 0) shapes_.erase(entry);
  }
}

void ExpectedWork::SetForecast(std::optional<Workload> forecast) {
  if (forecast == forecast_) return;
  forecast_ = std::move(forecast);
  changed_ = true;
}

Workload ExpectedWork::Shapes() {
  changed_ = false;
  if (forecast_.has_value()) return *forecast_;
  Workload shapes;
  for (const auto& [key, shape] : shapes_) shapes.push_back(shape);
  for (WorkloadShape& shape : shapes) shape.count = QuantisedCount(shape.count);
  std::stable_sort(
      shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  if (shapes.size() > kMaxShapes) shapes.resize(kMaxShapes);
  return shapes;
}

uint64_t ExpectedWork::Fingerprint() const {
  Fnv hash;
  for (const auto& [key, shape] : shapes_) {
    hash.Add(key);
    hash.Add(shape.count);
  }
  if (!forecast_.has_value()) return hash.value();
  for (const WorkloadShape& shape : *forecast_) {
    for (const Amount& amount : shape.amounts) {
      hash.Add(amount.resource);
      hash.Add(static_cast<uint64_t>(amount.amount));
    }
    hash.Add(shape.constraint.ToString());
    hash.Add(shape.count);
  }
  return hash.value();
}

}  // namespace fluxqueue::graph
