// What each namespace has in the queues, from the rows of workloads into the facts: the replica
// that answers the webhook is seldom the one that counts. Where no FluxQueue has a quota nothing is
// read.
//
// Confined to the thread of its loop.
#pragma once

#include "libs/lifecycle/loop_component.h"
#include "libs/postgres/connection.h"
#include "services/admission/adapters/facts_cache.h"

#include "absl/status/status.h"

namespace fluxqueue::admission {

class UsageReader {
 public:
  // The cache must outlive the reader.
  UsageReader(postgres::Options options, FactsCache& facts);

  // Reads until asked to stop. While the database is away the facts keep what was read last: what
  // comes then is counted when it is taken in.
  absl::Status Run(lifecycle::LoopContext& loop);

 private:
  absl::Status Read();

  postgres::Connection connection_;
  FactsCache& facts_;
};

}  // namespace fluxqueue::admission
