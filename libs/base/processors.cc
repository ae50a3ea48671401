#include "libs/base/processors.h"

#include <array>
#include <fstream>
#include <numeric>

namespace fluxqueue {
namespace {

// user nice system idle iowait irq softirq steal; what follows is in user already.
constexpr size_t kColumns = 8;
constexpr size_t kIdle = 3;
constexpr size_t kWaitsForDisk = 4;

}  // namespace

double ProcessorUse::Busy() {
  std::ifstream file(path_);
  std::string name;
  std::array<uint64_t, kColumns> ticks{};
  file >> name;
  for (uint64_t& column : ticks) file >> column;
  if (!file || name != "cpu") return 0;
  const uint64_t idle = ticks[kIdle] + ticks[kWaitsForDisk];
  const uint64_t all = std::accumulate(ticks.begin(), ticks.end(), uint64_t{0});
  // Time that went by for no processor, or was counted back, says nothing new.
  if (all > all_ && idle >= idle_) {
    busy_ = 1 - static_cast<double>(idle - idle_) / static_cast<double>(all - all_);
  }
  idle_ = idle;
  all_ = all;
  return busy_;
}

}  // namespace fluxqueue
