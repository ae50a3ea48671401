// What must be there before a loop runs: the service's tables and the topics.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "libs/delivery/options.h"
#include "libs/postgres/migrations.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

// The tables inbox, inbox_streams, outbox, leases, quarantine, skips.
const postgres::MigrationSet& Migrations();

// Makes those of the service's topics (kafka/rights.h) that are missing. Asks the brokers, once.
absl::Status MakeTopics(const LoopOptions& options);

// Migrates the service's schema (delivery's tables, then `migrations`) and makes its topics that
// are missing. While Postgres or Kafka is away it calls `waits` with the reason and tries again,
// until it is done or stopped (Cancelled, with the last reason). Another error is returned at once:
// something that an operator must change. Blocks.
absl::Status Prepare(const LoopOptions& options,
                     const std::vector<const postgres::MigrationSet*>& migrations,
                     const std::function<void(const absl::Status&)>& waits,
                     std::stop_token stop,
                     const Clock& clock = RealClock());

}  // namespace fluxqueue::delivery
