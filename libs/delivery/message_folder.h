// What becomes of a message of the log: it is handled, or goes to the dead letters, or is dropped
// as a duplicate or behind a gap. An event of a kind that only a later version knows is passed
// over: in an upgrade it is for those who know it. Confined to the loop's thread.
//
// What an operator wants left out goes to the dead letters unread, as reading it may be what ends
// the process: not a byte of its value is looked at, and nobody asks who has signed it. Its place
// in its stream is the one that its headers name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "libs/delivery/committer.h"
#include "libs/delivery/faults.h"
#include "libs/delivery/handler.h"
#include "libs/delivery/ledger.h"
#include "libs/delivery/partition_table.h"
#include "libs/kafka/message.h"
#include "libs/signing/batch.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

class MessageFolder {
 public:
  // What it refers to must outlive it.
  MessageFolder(const std::string& topic,
                const signing::Keys* keys,
                PartitionHandler& handler,
                FaultInjector* faults);

  // A partition is held from now on, or what an operator wants left out of it was read again.
  void LeaveOut(int partition, Skips skips) { skips_[partition] = std::move(skips); }
  // It is held no longer.
  void Drop(int partition) {
    skips_.erase(partition);
    leads_.erase(partition);
    told_newer_.erase(partition);
  }

  // The message failed alone: the next time it is not handled again. Holds for one at a time.
  void Condemn(const kafka::Message& message, std::string reason);
  bool condemns() const { return condemned_.has_value(); }
  void Pardon() { condemned_.reset(); }

  // Moves the partition past the message, and adds what came of it to the batch. Any status but OK
  // is for the whole batch.
  absl::Status Fold(const kafka::Message& message,
                    PartitionTable::Partition& partition,
                    Batch* batch);

 private:
  struct Condemned {
    int partition;
    int64_t offset;
    std::string reason;
  };

  absl::Status Handle(const kafka::Message& message,
                      const Record& record,
                      bool decodes,
                      Batch* batch);
  void PassOver(const kafka::Message& message, const events::v1::Envelope& envelope, Batch* batch);
  // Counts, and says at first, that the message was appended later than its sender thought
  // possible.
  void NoteLead(const kafka::Message& message, const events::v1::Envelope& envelope, Batch* batch);
  // Why it is not to be handled; nothing: it is.
  std::optional<std::string> WhyNot(const kafka::Message& message,
                                    const events::v1::Envelope& envelope,
                                    bool decodes) const;
  absl::Status Bury(const kafka::Message& message,
                    const events::v1::Envelope& envelope,
                    std::string reason,
                    bool unproven,
                    Batch* batch) const;

  const std::string& topic_;
  PartitionHandler& handler_;
  FaultInjector* const faults_;
  std::optional<signing::BatchVerifier> verifier_;
  std::map<int, Skips> skips_;
  std::map<int, bool> leads_;  // the last message of the partition did
  // Of which it was said that events were passed over.
  std::set<int> told_newer_;
  std::optional<Condemned> condemned_;
};

}  // namespace fluxqueue::delivery
