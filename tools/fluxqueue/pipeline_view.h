// How far behind the services are: what they have not read yet, and what they have not sent yet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libs/kafka/admin.h"
#include "libs/postgres/connection.h"

#include "absl/status/statusor.h"

namespace fluxqueue::cli {

struct ConsumerLag {
  std::string service;
  std::string topic;
  int partition = 0;
  std::string holder;  // the replica; empty: none
  int64_t lag = 0;     // records that are not handled
};

struct OutboxDepth {
  std::string service;
  int64_t messages = 0;  // committed, and not known to be in Kafka
};

struct PipelineView {
  std::vector<ConsumerLag> consumers;
  std::vector<OutboxDepth> outboxes;
};

absl::StatusOr<PipelineView> ReadPipeline(postgres::Connection& connection, kafka::Admin& admin);

}  // namespace fluxqueue::cli
