#include "libs/kubernetes/shared_amounts.h"

#include <utility>

namespace fluxqueue::kubernetes {

SharedAmounts::SharedAmounts(Amounts amounts) {
  if (!amounts.empty()) value_ = std::make_shared<const Amounts>(std::move(amounts));
}

const Amounts& SharedAmounts::operator*() const {
  static const Amounts kNone;
  return value_ == nullptr ? kNone : *value_;
}

void AmountsPool::Share(SharedAmounts* amounts) {
  if (amounts->value_ != nullptr) amounts->value_ = copies_(*amounts->value_);
}

}  // namespace fluxqueue::kubernetes
