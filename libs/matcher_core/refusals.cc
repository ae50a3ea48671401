#include "libs/matcher_core/refusals.h"

#include <utility>

namespace fluxqueue::matcher_core {

const Refusals::Refusal* Refusals::Find(const std::string& as, int64_t duration_s) const {
  const auto it = refusals_.find(as);
  return it != refusals_.end() && duration_s >= it->second.shortest_s ? &it->second : nullptr;
}

std::pair<Refusals::Refusal&, bool> Refusals::Of(std::string as) {
  const auto [it, is_new] = refusals_.try_emplace(std::move(as));
  return {it->second, is_new};
}

bool Refusals::Has(const std::string& as, int64_t duration_s) const {
  if (Find(as, duration_s) != nullptr) return true;
  const auto it = no_more_.find(as);
  return it != no_more_.end() && duration_s >= it->second;
}

}  // namespace fluxqueue::matcher_core
