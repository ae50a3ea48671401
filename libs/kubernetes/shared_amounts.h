// Amounts that many have alike, as the pods of jobs do: one copy of them for all who keep them.
//
//   SharedAmounts requests = EffectiveRequests(pod);   // a copy of its own
//   pool.Share(&requests);                             // now the pool's
//
// A value like Amounts, but for that it is replaced as a whole: equal ones are equal whether they
// are shared or not. Thread-compatible; copies may be read and dropped on any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "libs/base/interner.h"
#include "libs/kubernetes/quantity.h"

namespace fluxqueue::kubernetes {

class SharedAmounts {
 public:
  SharedAmounts() = default;       // no resource
  SharedAmounts(Amounts amounts);  // NOLINT(*-explicit-*)

  const Amounts& operator*() const;
  const Amounts* operator->() const { return &**this; }

  friend bool operator==(const SharedAmounts& a, const SharedAmounts& b) {
    return a.value_ == b.value_ || *a == *b;
  }

 private:
  friend class AmountsPool;

  std::shared_ptr<const Amounts> value_;  // null: none
};

// The copies. Confined to one thread.
class AmountsPool {
 public:
  void Share(SharedAmounts* amounts);
  size_t size() const { return copies_.size(); }

 private:
  Interner<Amounts> copies_;
};

}  // namespace fluxqueue::kubernetes
