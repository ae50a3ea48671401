#include "libs/graph/forecast.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/expected_work.h"
#include "libs/graph/fragmentation.h"

namespace fluxqueue::graph {
namespace {

constexpr uint64_t kTakenUpParts = 8;
// One job does not make a user's others forgotten.
constexpr uint64_t kMostSlotsOfJob = Forecast::kMostSlotsOfUser / 4;
// After so many nothing is left.
constexpr int64_t kMostHalvings = 64;

std::string KeyOf(const WorkloadShape& shape) {
  std::string key;
  for (const Amount& amount : shape.amounts) {
    key += fmt::format("{}:{}={} ", amount.resource.size(), amount.resource, amount.amount);
  }
  return key + shape.constraint.ToJson().dump();
}

// As it is when it was written and read again.
Constraint AsRead(const Constraint& constraint) {
  std::optional<std::vector<Toleration>> none;
  absl::StatusOr<Constraint> read = Constraint::Parse(constraint.ToJson(), "forecast", &none);
  CHECK(read.ok(), "{}", Message(read.status()));
  return *std::move(read);
}

uint64_t GpusOf(const WorkloadShape& shape) {
  int64_t gpus = 0;
  for (const Amount& amount : shape.amounts) {
    const int64_t most = std::min(amount.amount, kMaxDevices * kWholeDevice);
    if (amount.resource == kGpuMilli) gpus += most;
    if (IsWholeGpus(amount.resource)) gpus += most * kWholeDevice;
  }
  return shape.count * static_cast<uint64_t>(gpus);
}

}  // namespace

void Forecast::Arrive(std::string_view user, const Jobspec& jobspec, int64_t now_s) {
  for (const SlotGroup& slots : jobspec.groups) {
    if (!AsksForGpus(slots.request)) continue;
    Arrive(user, WorkloadShape{slots.request, jobspec.constraint, slots.slots}, now_s);
  }
}

void Forecast::Arrive(std::string_view user, const WorkloadShape& shape, int64_t now_s) {
  Age(now_s);
  const auto [entry, added] = shapes_.try_emplace(KeyOf(shape));
  Remembered& one = entry->second;
  if (added) one.shape = {shape.amounts, AsRead(shape.constraint), 0};
  const uint64_t come = std::min(shape.count, kMostSlotsOfJob) * kOneSlot;
  one.by_user[std::string(user)].coming += come;
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
    for (auto& [user, share] : one.by_user) share.counts += std::exchange(share.coming, 0);
  }
  counts_ += std::exchange(coming_, 0);
  LimitUsers();
  while (counts_ > kMostSlots * kOneSlot) Halve([](std::string_view) { return true; });
  changed_ = true;
}

void Forecast::LimitUsers() {
  struct User {
    uint64_t counts = 0;
    size_t shapes = 0;
  };
  while (true) {
    std::map<std::string, User, std::less<>> users;
    for (const auto& [key, one] : shapes_) {
      for (const auto& [user, share] : one.by_user) {
        users[user].counts += share.counts;
        ++users[user].shapes;
      }
    }
    std::erase_if(users, [](const auto& user) {
      return user.second.counts <= kMostSlotsOfUser * kOneSlot &&
             user.second.shapes <= kMostShapesOfUser;
    });
    if (users.empty()) return;
    Halve([&users](std::string_view user) { return users.contains(user); });
  }
}

void Forecast::Halve(const std::function<bool(std::string_view user)>& whose) {
  counts_ = 0;
  coming_ = 0;
  for (auto& [key, one] : shapes_) {
    for (auto& [user, share] : one.by_user) {
      if (whose(user)) share = {share.counts / 2, share.coming / 2};
      counts_ += share.counts;
      coming_ += share.coming;
    }
    std::erase_if(one.by_user, [](const auto& share) { return share.second == Share{}; });
  }
  std::erase_if(shapes_, [](const auto& one) { return one.second.by_user.empty(); });
  changed_ = true;
}

Workload Forecast::Shapes() {
  changed_ = false;
  Workload shapes;
  for (const auto& [key, one] : shapes_) {
    WorkloadShape& shape = shapes.emplace_back(one.shape);
    for (const auto& [user, share] : one.by_user) shape.count += share.counts;
    shape.count = QuantisedCount(shape.count);
    if (shape.count == 0) shapes.pop_back();
  }
  std::stable_sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) {
    return GpusOf(a) > GpusOf(b);
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
    for (const auto& [user, share] : one.by_user) {
      forecast.counts_ += share.counts;
      forecast.coming_ += share.coming;
    }
    forecast.shapes_.emplace(KeyOf(one.shape), std::move(one));
  }
  forecast.changed_ = true;
  return forecast;
}

}  // namespace fluxqueue::graph
