#include "libs/scheduling/resources.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "libs/base/int128.h"

namespace fluxqueue::scheduling {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t SumOf(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return b > 0 ? kMost : 0;
  return sum;
}

bool IsGpuParts(std::string_view resource) {
  return resource == "fluxqueue.io/gpu-milli";
}

// "gpu", and what a device plugin calls so: "nvidia.com/gpu", "nvidia.com/gpu.shared".
bool IsWholeGpu(std::string_view resource) {
  const size_t slash = resource.find('/');
  const std::string_view name = slash == resource.npos ? resource : resource.substr(slash + 1);
  return name == "gpu" || name.starts_with("gpu.");
}

}  // namespace

size_t SharedIndex(std::string_view resource) {
  if (resource == "cpu") return kCpu;
  if (resource == "memory") return kMemory;
  if (IsGpuParts(resource) || IsWholeGpu(resource)) return kGpu;
  return kShared;
}

std::string_view SharedName(size_t shared) {
  static constexpr std::array<std::string_view, kShared> kNames = {"cpu", "memory", "gpu"};
  return shared < kShared ? kNames[shared] : "";
}

void Resources::Add(std::string_view resource, int64_t amount) {
  if (amount <= 0) return;
  const size_t shared = SharedIndex(resource);
  if (shared == kShared) return SumOther(std::string(resource), amount);
  if (shared == kGpu && !IsGpuParts(resource)) {
    amount = amount > kMost / kWholeGpu ? kMost : amount * kWholeGpu;
  }
  shared_[shared] = SumOf(shared_[shared], amount);
}

void Resources::AddShared(const Resources& more) {
  for (size_t i = 0; i < kShared; ++i) shared_[i] = SumOf(shared_[i], more.shared_[i]);
}

Resources Resources::Part(uint32_t parts, uint32_t of) const {
  const auto part_of = [&](int64_t amount) {
    return static_cast<int64_t>(std::min<Int128>(static_cast<Int128>(amount) * parts / of, kMost));
  };
  Resources part;
  for (size_t i = 0; i < kShared; ++i) part.shared_[i] = part_of(shared_[i]);
  for (const auto& [name, amount] : others_) part.SumOther(name, part_of(amount));
  return part;
}

void Resources::Sum(const Resources& other, int sign) {
  for (size_t i = 0; i < kShared; ++i) shared_[i] = SumOf(shared_[i], sign * other.shared_[i]);
  for (const auto& [name, amount] : other.others_) SumOther(name, sign * amount);
}

void Resources::SumOther(const std::string& name, int64_t amount) {
  const auto it = std::lower_bound(
      others_.begin(), others_.end(), name, [](const auto& have, const std::string& wanted) {
        return have.first < wanted;
      });
  if (it == others_.end() || it->first != name) {
    if (amount != 0) others_.insert(it, {name, amount});
    return;
  }
  it->second = SumOf(it->second, amount);
  if (it->second == 0) others_.erase(it);
}

int64_t Resources::Of(std::string_view resource) const {
  const size_t shared = SharedIndex(resource);
  if (shared < kShared) return shared_[shared];
  for (const auto& [name, amount] : others_) {
    if (name == resource) return amount;
  }
  return 0;
}

bool Resources::empty() const {
  return others_.empty() &&
         std::all_of(shared_.begin(), shared_.end(), [](int64_t amount) { return amount == 0; });
}

std::string FormatAmount(std::string_view resource, int64_t amount) {
  switch (SharedIndex(resource)) {
    case kCpu:
      return amount % 1000 == 0 ? std::to_string(amount / 1000) : fmt::format("{}m", amount);
    case kGpu:
      return amount % kWholeGpu == 0 ? std::to_string(amount / kWholeGpu)
                                     : fmt::format("{:g}", static_cast<double>(amount) / kWholeGpu);
    case kMemory: {
      static constexpr std::array<std::string_view, 4> kUnits = {"", "Ki", "Mi", "Gi"};
      size_t unit = 0;
      while (unit + 1 < kUnits.size() && amount != 0 && amount % 1024 == 0) {
        amount /= 1024;
        ++unit;
      }
      return fmt::format("{}{}", amount, kUnits[unit]);
    }
    default:
      return std::to_string(amount);
  }
}

}  // namespace fluxqueue::scheduling
