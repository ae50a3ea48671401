#include "services/admission/domain/unheard.h"

#include <algorithm>
#include <bit>

namespace fluxqueue::admission {

std::vector<std::string> Unheard::Look(const Comparison& seen, const Log& log) {
  std::vector<std::string> lost;
  std::map<int, std::optional<int64_t>> ends;
  const std::map<std::string, Sight> before = TakePage(seen);
  for (const Lack& lack : seen.lacks) {
    const auto known = before.find(lack.uid);
    if (known == before.end()) {
      sights_[lack.uid] = {.said = log.said};
      continue;
    }
    Sight& sight = sights_[lack.uid] = known->second;
    const auto handled = seen.handled.find(lack.partition);
    if (sight.end && handled != seen.handled.end() && handled->second >= *sight.end) {
      if (std::has_single_bit(++sight.lost)) lost.push_back(lack.uid);
      continue;
    }
    if (log.acknowledged < sight.said) continue;
    const auto [end, first] = ends.try_emplace(lack.partition);
    if (first) end->second = log.end(lack.partition);
    // A log that was made anew ends earlier.
    if (end->second) sight.end = std::min(*end->second, sight.end.value_or(*end->second));
  }
  return lost;
}

std::map<std::string, Unheard::Sight> Unheard::TakePage(const Comparison& seen) {
  std::map<std::string, Sight> page;
  auto sight = sights_.upper_bound(seen.after);
  while (sight != sights_.end() && (seen.until.empty() || sight->first <= seen.until)) {
    page.insert(sights_.extract(sight++));
  }
  return page;
}

}  // namespace fluxqueue::admission
