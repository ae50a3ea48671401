// The tables of queue and matcher in memory, for one pool: what the cores changed goes in, what
// they are restored from comes out. Rows that no restore reads are not kept. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "fluxqueue/replay/v1/snapshot.pb.h"

#include "libs/matcher_core/rows.h"
#include "libs/queue_core/rows.h"

namespace fluxqueue::verify {

class QueueTables {
 public:
  QueueTables() = default;
  explicit QueueTables(const replay::v1::QueueTables& saved);

  void Write(const queue_core::Changes& changes);
  queue_core::Rows Rows() const;
  // All of it as one batch.
  queue_core::Changes All() const;
  replay::v1::QueueTables Save() const;

 private:
  void WriteJob(const queue_core::JobChange& change);

  std::string pool_;
  std::map<std::string, queue_core::JobChange> jobs_;  // by id
  std::map<uint64_t, std::string> endings_;            // ids of those that have ended
  std::map<std::string, std::string> queues_;          // by name
  std::map<uint64_t, std::string> cycles_;             // not answered
  std::map<std::pair<std::string, std::string>, std::string> usage_;  // by kind and name
};

class MatcherTables {
 public:
  MatcherTables() = default;
  explicit MatcherTables(const replay::v1::MatcherTables& saved);

  void Write(const matcher_core::Changes& changes);
  matcher_core::Rows Rows() const;
  matcher_core::Changes All() const;
  replay::v1::MatcherTables Save() const;

 private:
  std::map<matcher_core::AllocationKey, matcher_core::AllocationRow> allocations_;
  std::map<std::string, matcher_core::NodeRow> nodes_;
  std::map<std::pair<std::string, uint32_t>, matcher_core::SpecRow> specs_;
  std::map<matcher_core::AllocationKey, matcher_core::ReservationRow> reservations_;
  std::optional<matcher_core::AnswerRow> answer_;  // the last one
  std::optional<std::string> pool_;
  std::optional<std::string> forecast_;
};

}  // namespace fluxqueue::verify
