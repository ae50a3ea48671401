// Which committed messages are still to be handed to Kafka, and up to where they are acknowledged.
// Pure.
//
// Rows are handed over in the order in which they were added, which is the order of their
// sequences. Acknowledgements of a partition come in order, but those of different rows of a line
// (a stream and its target) need not all come from the same producer: so a row may go only once
// every row before it in its line is acknowledged. That unbroken prefix is what may be deleted.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/delivery/wire.h"

namespace fluxqueue::delivery {

class OutboxTracker {
 public:
  struct Item {
    uint64_t row;  // for Acknowledge
    const Target& target;
    const WireRecord& record;
  };

  void Add(OutboxRow row);

  // The record to be handed over next; valid until another method is called.
  std::optional<Item> Next();
  void Advance();
  // One record of the row is in Kafka. A row that is not known (its line was dropped) is ignored.
  void Acknowledge(uint64_t row);
  // Everything not acknowledged is to be handed over again, from the first.
  void Restart();

  // What may be deleted and was not yet.
  std::vector<Prefix> Prefixes() const;
  void Deleted(const std::vector<Prefix>& prefixes);

  // The stream is another's now. `base`: without an incarnation; all owners' rows go.
  void DropStream(const std::string& base);

  // Rows are numbered as they are added: the last one, and the last up to which all are in Kafka.
  uint64_t last() const { return last_row_; }
  uint64_t acknowledged() const;

  size_t records() const { return records_; }  // not acknowledged
  size_t bytes() const { return bytes_; }

 private:
  using LineKey = std::pair<std::string, Target>;
  struct Row {
    LineKey line;
    uint64_t last_seq = 0;
    std::vector<WireRecord> records;
    size_t acknowledged = 0;
    bool done() const { return acknowledged == records.size(); }
  };
  struct Line {
    std::deque<uint64_t> rows;  // not yet part of the prefix
    uint64_t prefix = 0;
    uint64_t deleted = 0;
  };

  static size_t BytesOf(const Row& row);
  void Remove(std::map<uint64_t, Row>::iterator row);

  std::map<uint64_t, Row> rows_;
  std::map<LineKey, Line> lines_;
  uint64_t last_row_ = 0;
  // The next record to be handed over: the first row not below next_row_, and an index into it if
  // it is that very row.
  uint64_t next_row_ = 0;
  size_t next_record_ = 0;
  size_t records_ = 0;
  size_t bytes_ = 0;
};

}  // namespace fluxqueue::delivery
