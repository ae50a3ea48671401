#include "libs/graph/forecast.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/expected_work.h"
#include "libs/graph/fragmentation.h"

namespace fluxqueue::graph {
namespace {

constexpr uint64_t kTakenUpParts = 8;
// One job does not make a tenant's others forgotten.
constexpr uint64_t kMostSlotsOfJob = Forecast::kMostSlotsOfTenant / 4;
// After these nothing is left.
constexpr int64_t kMostHalvings = 64;

std::string KeyOf(const WorkloadShape& shape) {
  std::string key;
  for (const Amount& amount : shape.amounts) {
    key += fmt::format("{}:{}={} ", amount.resource.size(), amount.resource, amount.amount);
  }
  return key + shape.constraint.ToJson().dump();
}

// In thousandths, of one slot.
int64_t GpusOf(const Amounts& amounts) {
  int64_t gpus = 0;
  for (const Amount& amount : amounts) {
    const int64_t most = std::min(amount.amount, kMaxDevices * kWholeDevice);
    if (amount.resource == kGpuMilli) gpus += most;
    if (IsWholeGpus(amount.resource)) gpus += most * kWholeDevice;
  }
  return gpus;
}

// As it is when it was written and read again; nothing: it is not to be remembered.
std::optional<WorkloadShape> AsRead(const WorkloadShape& shape) {
  if (GpusOf(shape.amounts) > Forecast::kMostGpusOfSlot * kWholeDevice) return std::nullopt;
  const nlohmann::json constraint = shape.constraint.ToJson();
  if (constraint.dump().size() > Forecast::kMostConstraintBytes) return std::nullopt;
  std::optional<std::vector<Toleration>> none;
  absl::StatusOr<Constraint> read = Constraint::Parse(constraint, "forecast", &none);
  if (!read.ok()) return std::nullopt;
  return WorkloadShape{shape.amounts, *std::move(read), 0};
}

}  // namespace

void Forecast::Arrive(std::string_view tenant, const Jobspec& jobspec, int64_t now_s) {
  for (const SlotGroup& slots : jobspec.groups) {
    if (!AsksForGpus(slots.request)) continue;
    Arrive(tenant, WorkloadShape{slots.request, jobspec.constraint, slots.slots}, now_s);
  }
}

void Forecast::Arrive(std::string_view tenant, const WorkloadShape& shape, int64_t now_s) {
  Age(now_s);
  auto entry = shapes_.find(KeyOf(shape));
  if (entry == shapes_.end()) {
    std::optional<WorkloadShape> read = AsRead(shape);
    if (!read.has_value()) return;
    std::string key = KeyOf(*read);
    entry = shapes_.try_emplace(std::move(key), Remembered{*std::move(read), {}}).first;
  }
  const uint64_t come = std::min(shape.count, kMostSlotsOfJob) * kOneSlot;
  entry->second.by_tenant[std::string(tenant)].coming += come;
  coming_ += come;
  if (coming_ * kTakenUpParts >= counts_) TakeUp();
}

void Forecast::Age(int64_t now_s) {
  const int64_t halvings = std::min((now_s - halved_s_) / kHalfLifeS, kMostHalvings);
  if (halvings <= 0) return;
  for (int64_t i = 0; i < halvings; ++i) Halve([](std::string_view) { return true; });
  halved_s_ = now_s - now_s % kHalfLifeS;
}

void Forecast::TakeUp() {
  for (auto& [key, one] : shapes_) {
    for (auto& [tenant, share] : one.by_tenant) share.counts += std::exchange(share.coming, 0);
  }
  counts_ += std::exchange(coming_, 0);
  LimitTenants();
  while (counts_ > kMostSlots * kOneSlot) Halve([](std::string_view) { return true; });
  changed_ = true;
}

void Forecast::LimitTenants() {
  std::map<std::string, size_t, std::less<>> shapes;  // of each tenant
  for (const auto& [key, one] : shapes_) {
    for (const auto& [tenant, share] : one.by_tenant) ++shapes[tenant];
  }
  for (const auto& [tenant, count] : shapes) {
    if (count > kMostShapesOfTenant) ForgetLeast(tenant, count - kMostShapesOfTenant);
    while (CountsOf(tenant) > kMostSlotsOfTenant * kOneSlot) {
      Halve([&tenant](std::string_view whose) { return whose == tenant; });
    }
  }
}

uint64_t Forecast::CountsOf(std::string_view tenant) const {
  uint64_t counts = 0;
  for (const auto& [key, one] : shapes_) {
    const auto share = one.by_tenant.find(tenant);
    if (share != one.by_tenant.end()) counts += share->second.counts;
  }
  return counts;
}

void Forecast::ForgetLeast(std::string_view tenant, size_t most) {
  std::vector<std::pair<uint64_t, std::string_view>> shares;  // (gpus together, shape)
  for (const auto& [key, one] : shapes_) {
    const auto share = one.by_tenant.find(tenant);
    if (share == one.by_tenant.end()) continue;
    shares.emplace_back(share->second.counts * static_cast<uint64_t>(GpusOf(one.shape.amounts)),
                        key);
  }
  std::sort(shares.begin(), shares.end());
  shares.resize(std::min(shares.size(), most));
  for (const auto& [gpus, key] : shares) {
    const auto shape = shapes_.find(std::string(key));
    const auto share = shape->second.by_tenant.find(tenant);
    counts_ -= share->second.counts;
    shape->second.by_tenant.erase(share);
    if (shape->second.by_tenant.empty()) shapes_.erase(shape);
  }
}

void Forecast::Halve(const std::function<bool(std::string_view tenant)>& whose) {
  counts_ = 0;
  coming_ = 0;
  for (auto& [key, one] : shapes_) {
    for (auto& [tenant, share] : one.by_tenant) {
      if (whose(tenant)) share = {share.counts / 2, share.coming / 2};
      counts_ += share.counts;
      coming_ += share.coming;
    }
    std::erase_if(one.by_tenant, [](const auto& share) { return share.second == Share{}; });
  }
  std::erase_if(shapes_, [](const auto& one) { return one.second.by_tenant.empty(); });
  changed_ = true;
}

Workload Forecast::Shapes() {
  changed_ = false;
  Workload shapes;
  for (const auto& [key, one] : shapes_) {
    WorkloadShape& shape = shapes.emplace_back(one.shape);
    for (const auto& [tenant, share] : one.by_tenant) shape.count += share.counts;
    shape.count = QuantisedCount(shape.count);
    if (shape.count == 0) shapes.pop_back();
  }
  std::stable_sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) {
    return a.count * static_cast<uint64_t>(GpusOf(a.amounts)) >
           b.count * static_cast<uint64_t>(GpusOf(b.amounts));
  });
  if (shapes.size() > kMostShapes) shapes.resize(kMostShapes);
  return shapes;
}

std::vector<Forecast::Remembered> Forecast::remembered() const {
  std::vector<Remembered> remembered;
  for (const auto& [key, one] : shapes_) remembered.push_back(one);
  return remembered;
}

Forecast Forecast::Restore(std::vector<Remembered> remembered, int64_t halved_s) {
  Forecast forecast;
  forecast.halved_s_ = halved_s;
  for (Remembered& one : remembered) {
    for (const auto& [tenant, share] : one.by_tenant) {
      forecast.counts_ += share.counts;
      forecast.coming_ += share.coming;
    }
    forecast.shapes_.emplace(KeyOf(one.shape), std::move(one));
  }
  forecast.changed_ = true;
  return forecast;
}

}  // namespace fluxqueue::graph
