// One value for all who have an equal one: 100,000 jobs of 100 users in 10 sizes hold 110 of them.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

namespace fluxqueue {

template <typename T>
class Interner {
 public:
  // Below so many it forgets none.
  static constexpr size_t kLeast = 1024;

  std::shared_ptr<const T> operator()(T value) {
    if (known_.size() >= sweep_at_) Sweep();
    std::weak_ptr<const T>& known = known_[value];
    std::shared_ptr<const T> shared = known.lock();
    if (shared == nullptr) {
      shared = std::make_shared<const T>(std::move(value));
      known = shared;
    }
    return shared;
  }

  // Also of those that no one has any more, as far as they are not forgotten yet.
  size_t size() const { return known_.size(); }

 private:
  // Forgets what no one has any more, whenever there are twice as many as were left last time.
  void Sweep() {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = known_.size() < kLeast / 2 ? kLeast : 2 * known_.size();
  }

  std::map<T, std::weak_ptr<const T>> known_;
  size_t sweep_at_ = kLeast;
};

}  // namespace fluxqueue
