// Amounts of resources as limits and fair share count them. Three are what shares are taken of:
//
//   cpu      millicores         "cpu"
//   memory   bytes              "memory"
//   gpu      thousandths of one "gpu", "nvidia.com/gpu", "amd.com/gpu" … (whole ones), and
//                               "fluxqueue.io/gpu-milli" (thousandths)
//
// So a limit of gpus counts those of every maker, and parts of them. Every other resource is
// carried by its name, in its base unit.
//
// Sums stop at the greatest number there is. Pure, thread-compatible.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fluxqueue::scheduling {

inline constexpr size_t kCpu = 0;
inline constexpr size_t kMemory = 1;
inline constexpr size_t kGpu = 2;
inline constexpr size_t kShared = 3;  // how many of them there are
inline constexpr int64_t kWholeGpu = 1000;

class Resources {
 public:
  Resources() = default;

  // Below 0 counts as 0.
  void Add(std::string_view resource, int64_t amount);
  void Add(const Resources& more) { Sum(more, 1); }
  // Without the others.
  void AddShared(const Resources& more);
  // REQUIRES: was added before.
  void Remove(const Resources& less) { Sum(less, -1); }
  // So many of `of` equal parts, rounded down. REQUIRES: of > 0.
  Resources Part(uint32_t parts, uint32_t of) const;

  int64_t operator[](size_t shared) const { return shared_[shared]; }
  const std::array<int64_t, kShared>& shared() const { return shared_; }
  // By name; none of them is 0.
  const std::vector<std::pair<std::string, int64_t>>& others() const { return others_; }
  // In the unit of this struct: thousandths for a gpu.
  int64_t Of(std::string_view resource) const;
  bool empty() const;

  friend bool operator==(const Resources&, const Resources&) = default;
  friend auto operator<=>(const Resources&, const Resources&) = default;

 private:
  void Sum(const Resources& other, int sign);
  void SumOther(const std::string& name, int64_t amount);

  std::array<int64_t, kShared> shared_ = {};
  std::vector<std::pair<std::string, int64_t>> others_;
};

// The place of the resource among those that are shared; kShared: it is another.
size_t SharedIndex(std::string_view resource);

// For people, in the unit that they write it in: "2500m" of cpu, "4Gi" of memory, "1.5" gpus.
std::string FormatAmount(std::string_view resource, int64_t amount);
// "cpu", "memory", "gpu".
std::string_view SharedName(size_t shared);

}  // namespace fluxqueue::scheduling
