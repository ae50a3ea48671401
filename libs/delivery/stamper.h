// Gives the messages of a batch their stream, sequence, time and trace, and sorts them into outbox
// rows: one for each stream and target. Pure; provisional until Commit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/delivery/outbox.h"
#include "libs/delivery/wire.h"
#include "libs/kafka/topics.h"

namespace fluxqueue::delivery {

class Stamper {
 public:
  // `max_clock_lead`: LoopOptions'.
  Stamper(std::string service, kafka::TopicNames topics, Millis max_clock_lead)
      : service_(std::move(service)), topics_(std::move(topics)), max_clock_lead_(max_clock_lead) {}

  // `stream`: of this owner alone (incarnation.h).
  void AddSource(int source, std::string stream);
  void DropSource(int source) { sources_.erase(source); }

  // A text in them that is no text is made one (texts.h).
  // REQUIRES: every message's source was added. A message of ours that is too large for a record
  // becomes a dead letter (before it gets a sequence); `oversized` counts them.
  std::vector<OutboxRow> Stamp(std::vector<Outbox::Message>& messages,
                               std::vector<DeadLetter> letters,
                               Millis now,
                               int* oversized);
  void Commit();
  void Rollback() { given_.clear(); }

 private:
  struct Source {
    std::string stream;
    std::map<Target, uint64_t> sequences{};  // the last given out
  };
  using Key = std::pair<int, Target>;

  Target TargetOf(const Outbox::Message& message) const;
  const Source& SourceOf(int source) const;
  // The row of a key in the making, and the next sequence in it.
  OutboxRow& RowOf(const Key& key, std::map<Key, OutboxRow>& rows);

  const std::string service_;
  const kafka::TopicNames topics_;
  const Millis max_clock_lead_;
  std::map<int, Source> sources_;
  std::map<Key, uint64_t> given_;  // by this batch
};

}  // namespace fluxqueue::delivery
