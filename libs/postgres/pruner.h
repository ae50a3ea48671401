// Deletes what is old, beside a service's loop and never in its way: on a thread and a connection
// of its own, in transactions of a bounded number of rows. As long as a transaction finds as many
// rows as it may delete, another one follows; so the tables keep up with whatever ends. Between two
// it rests for as long as the last one took: half of the time the database is free of it.
//
// Every replica has one. Rows that another one deletes at the moment are passed over.
//
// Confined to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <pqxx/pqxx>

#include "libs/base/clock.h"
#include "libs/postgres/connection.h"

#include "absl/status/status.h"

namespace fluxqueue::postgres {

class Pruner {
 public:
  // What a transaction deletes at most: a few tens of milliseconds of work.
  static constexpr int64_t kMost = 1000;

  // Deletes up to kMost old rows of a kind, the oldest first, and returns how many. Throws what
  // libpqxx throws.
  using Step = std::function<size_t(pqxx::transaction_base&)>;
  using Steps = std::vector<Step>;
  // What there is to be done now. Throws what libpqxx throws.
  using Plan = std::function<Steps(pqxx::transaction_base&)>;
  // Waits; false when asked to stop meanwhile.
  using Sleep = std::function<bool(Millis)>;

  // Statements are planned as Plans::kKept. `clock` must outlive the pruner.
  Pruner(Options options, const Clock& clock, Plan plan);

  // Every minute what has become old since the last, until `sleep` returns false.
  absl::Status Run(const Sleep& sleep);
  // All that is old now. The steps take turns, so that none waits for one that has much to do. One
  // that fails is left to the next call, and its status returned.
  absl::Status RunOnce(const Sleep& sleep);

 private:
  absl::Status Take(const Step& step, size_t* deleted);

  const Clock& clock_;
  const Plan plan_;
  Connection connection_;
};

}  // namespace fluxqueue::postgres
