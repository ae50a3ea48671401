#include "libs/graph/fragmentation.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace fluxqueue::graph {
namespace {

// Ratios have so many bits behind the point. Greater ones than these are all the same.
constexpr int kRatioBits = 12;
constexpr uint64_t kMaxRatio = uint64_t{1} << 21;
constexpr uint64_t kMaxGravity = uint64_t{256} << kRatioBits;
constexpr uint64_t kMaxCount = uint64_t{1} << 20;

// What slots take of the gpus when nothing else is short.
int64_t GpusTaken(std::span<const int64_t> gpus, int64_t gpu) {
  int64_t slots = 0;
  if (gpu > kWholeDevice) {
    for (const int64_t free : gpus) slots += free >= kWholeDevice ? 1 : 0;
    return slots / ((gpu + kWholeDevice - 1) / kWholeDevice) * gpu;
  }
  for (const int64_t free : gpus) slots += free / gpu;
  return slots * gpu;
}

// `most` of the gpus are taken when the amounts are enough for that.
int64_t Limited(const NodeRoom& room, const SlotShape& shape, int64_t most) {
  const int64_t slots = most / shape.gpu;
  for (size_t i = 0; i < shape.amounts.size(); ++i) {
    const int64_t one = shape.amounts[i];
    int64_t all = 0;
    if (!__builtin_mul_overflow(one, slots, &all) && all <= room.amounts[i]) continue;
    if (room.amounts[i] < one) return 0;
    const int64_t whole = room.amounts[i] / one;
    // Of a slot in part; so many bits less that the product fits.
    const int bits = std::max(0, static_cast<int>(std::bit_width(static_cast<uint64_t>(one))) - 40);
    const int64_t rest = (room.amounts[i] % one) >> bits;
    most = std::min(most, whole * shape.gpu + rest * shape.gpu / (one >> bits));
  }
  return most;
}

uint64_t Ratio(int64_t of, int64_t to) {
  return std::min((static_cast<uint64_t>(of) << kRatioBits) / static_cast<uint64_t>(to), kMaxRatio);
}

// How grave it is when the shape loses what it could use.
uint64_t GravityOf(const Demand& demand, int64_t gpus, Gravity by) {
  const int64_t most = by == Gravity::kAlike ? 1 : by == Gravity::kTwiceForSeveral ? 2 : 256;
  const auto whole = static_cast<uint64_t>(std::clamp<int64_t>(demand.gpu / kWholeDevice, 1, most));
  const uint64_t rarity = Ratio(gpus, demand.usable);
  return std::min((rarity * rarity >> kRatioBits) * whole, kMaxGravity);
}

}  // namespace

int64_t UsableGpus(const NodeRoom& room, const SlotShape& shape) {
  return Limited(room, shape, GpusTaken(room.gpus, shape.gpu));
}

int64_t WorthOf(const NodeRoom& room, std::span<const WeighedShape> shapes) {
  int64_t worth = 0;
  int64_t gpu = 0;
  int64_t most = 0;
  for (const auto& [shape, weight] : shapes) {
    if (shape.gpu != gpu) {
      gpu = shape.gpu;
      most = GpusTaken(room.gpus, gpu);
    }
    if (most > 0) worth += weight * Limited(room, shape, most);
  }
  return worth;
}

std::vector<int64_t> WeightsOf(std::span<const Demand> demands, int64_t gpus, Gravity by) {
  std::vector<uint64_t> weights;
  uint64_t sum = 0;
  for (const Demand& demand : demands) {
    const uint64_t gravity = demand.usable > 0 ? GravityOf(demand, gpus, by) : 0;
    weights.push_back(std::min(demand.count, kMaxCount) * gravity);
    sum += weights.back();
  }
  // So that what is multiplied fits.
  const int shift = std::max(0, static_cast<int>(std::bit_width(sum)) - (63 - kWeightBits));
  std::vector<int64_t> shares;
  for (const uint64_t weight : weights) {
    const uint64_t share = sum == 0 ? 0 : ((weight >> shift) << kWeightBits) / (sum >> shift);
    shares.push_back(static_cast<int64_t>(share));
  }
  return shares;
}

uint64_t QuantisedCount(uint64_t count) {
  return std::bit_floor(count + count / 3);
}

}  // namespace fluxqueue::graph
