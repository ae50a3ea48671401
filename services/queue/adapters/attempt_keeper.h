// Looks after the partitions of queue.attempts: makes this month's and the next one's before there
// are rows for them, and drops those that are older than accounting is kept. Every replica has one;
// that they do the same is no harm.
//
// Confined to one thread.
#pragma once

#include <functional>

#include "libs/base/clock.h"
#include "libs/postgres/connection.h"

#include "absl/status/status.h"

namespace fluxqueue::queue {

class AttemptKeeper {
 public:
  // `months`: so many full months are kept, beside the present one. `clock` must outlive the
  // keeper.
  AttemptKeeper(const postgres::Options& options, const Clock& clock, int months);

  // Looks every hour, after a failure every minute, until `sleep` returns false.
  absl::Status Run(const std::function<bool(Millis)>& sleep);
  absl::Status RunOnce();

 private:
  const Clock& clock_;
  const int months_;
  postgres::Connection connection_;
};

}  // namespace fluxqueue::queue
