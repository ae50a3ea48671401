// What both loops are told.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "libs/base/clock.h"
#include "libs/base/processors.h"
#include "libs/kafka/bus.h"
#include "libs/kafka/client.h"
#include "libs/kafka/topics.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/store.h"
#include "libs/signing/keys.h"

namespace fluxqueue::delivery {

struct LoopOptions {
  // "queue": streams are "queue/<partition>", the consumer group is "fluxqueue.queue".
  std::string service;
  // Of this replica: unique, the same after a restart. Static group member and holder of leases.
  std::string instance;
  kafka::Brokers brokers;
  kafka::TopicNames topics;
  // `schema` is the service's; Run puts the delivery tables into it.
  postgres::Options postgres;
  // Stands in the inbox row of each partition held (column `address`): where other replicas reach
  // this one with calls about it. Empty: they cannot.
  std::string address{};
  // What is said is signed; null: it is not.
  std::shared_ptr<const signing::Signer> signer{};
  // What is read must be signed by who says it, or it becomes a dead letter; null: all is believed.
  std::shared_ptr<const signing::Keys> keys{};
  // A killed replica's partitions (or lease) move after this.
  Millis session_timeout{3000};
  // How far a broker's clock may be ahead of ours before it is not believed. Messages that Kafka
  // takes later than this after they were said count as of then.
  Millis max_clock_lead{60'000};
  // A loop that does not get on for so long hangs (Alive). So long Kafka's group waits for a poll
  // (max.poll.interval.ms).
  Millis step_limit{std::chrono::minutes(5)};
  // Messages in one batch.
  size_t max_batch = 1000;
  // Between two tries while something is away.
  Millis retry_min{50};
  Millis retry_max{2000};
  // The longest that a partition loop waits for messages.
  Millis idle{100};
  // The world: Kafka and Postgres, or what is simulated in their place.
  std::shared_ptr<kafka::Bus> bus = kafka::RealBus();
  std::shared_ptr<postgres::Stores> stores = postgres::RealStores();
  // How busy the machine is, as ProcessorUse says it.
  std::function<double()> busy = [use = ProcessorUse()]() mutable { return use.Busy(); };
  // Of what is left to chance: how far tries of replicas are apart.
  uint64_t seed = std::random_device()();
};

}  // namespace fluxqueue::delivery
