#include "libs/kubernetes/shared_amounts.h"

#include <algorithm>

namespace fluxqueue::kubernetes {

SharedAmounts::SharedAmounts(Amounts amounts) {
  if (!amounts.empty()) value_ = std::make_shared<const Amounts>(std::move(amounts));
}

const Amounts& SharedAmounts::operator*() const {
  static const Amounts kNone;
  return value_ == nullptr ? kNone : *value_;
}

void AmountsPool::Share(SharedAmounts* amounts) {
  if (amounts->value_ == nullptr) return;
  const auto [copy, first] = copies_.insert(amounts->value_);
  amounts->value_ = *copy;
  if (!first || copies_.size() < sweep_at_) return;
  std::erase_if(copies_, [](const Copy& unused) { return unused.use_count() == 1; });
  sweep_at_ = std::max(kFew, 2 * copies_.size());
}

}  // namespace fluxqueue::kubernetes
