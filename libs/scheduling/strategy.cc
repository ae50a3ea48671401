#include "libs/scheduling/strategy.h"

namespace fluxqueue::scheduling {
namespace {

class Fcfs final : public Strategy {
 public:
  std::string_view name() const override { return "fcfs"; }
  bool StopsAtFirstBlocked() const override { return true; }
  uint32_t Reservations(uint32_t) const override { return 0; }
};

}  // namespace

const Strategy* FindStrategy(std::string_view name) {
  static const Fcfs fcfs;
  return name.empty() || name == fcfs.name() ? &fcfs : nullptr;
}

std::string StrategyNames() {
  return std::string(FindStrategy("")->name());
}

}  // namespace fluxqueue::scheduling
