#include "services/graph/domain/slot_units.h"

#include <string_view>

namespace fluxqueue::graph_service {

int64_t BytesOfUnit(const std::string& unit) {
  constexpr std::string_view kLetters = "KMGTP";
  if (unit.empty()) return int64_t{1} << 20;
  if (unit == "B") return 1;
  const size_t power = kLetters.find(unit.front());
  const std::string_view rest = std::string_view(unit).substr(1);
  if (power == std::string_view::npos || (rest != "B" && rest != "iB")) return 0;
  return int64_t{1} << (10 * (power + 1));
}

}  // namespace fluxqueue::graph_service
