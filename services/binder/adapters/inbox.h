// Where the pod watch and the API workers leave what they have learnt for the loop's thread.
// Thread-safe. Unbounded: what is in it is bounded by the pods of the cluster and the calls under
// way.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "services/binder/domain/call.h"
#include "services/binder/domain/pod_board.h"

namespace fluxqueue::binder {

struct PodWasGone {
  std::string uid;
};
// The pod watch has told every pod there is.
struct PodsWereListed {};

using News = std::variant<PodFacts, PodWasGone, PodsWereListed, CallResult>;

class Inbox {
 public:
  // `wake` is called, on the poster's thread, when the inbox was empty. Set before anything is
  // posted.
  void SetWake(std::function<void()> wake) { wake_ = std::move(wake); }

  void Post(News news) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = news_.empty();
      news_.push_back(std::move(news));
    }
    if (first) wake_();
  }

  // In the order in which it was posted.
  std::vector<News> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, {});
  }

  bool empty() const {
    const std::lock_guard lock(mutex_);
    return news_.empty();
  }

 private:
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::vector<News> news_;
};

}  // namespace fluxqueue::binder
