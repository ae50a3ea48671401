// The messages of the batch under way. They get their stream, sequence and time when the batch
// commits, and are published after the commit. Confined to the loop's thread; services' tests make
// one of their own and look inside.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/delivery/wire.h"
#include "libs/kafka/message.h"

namespace fluxqueue::delivery {

class Outbox {
 public:
  enum class Target { kPool, kJobs };

  struct Message {
    int source;  // whose stream it goes into
    Target target;
    int partition;  // of the target; -1 for kJobs: follows from the job id
    events::v1::Envelope envelope;
  };

  // To the log of envelope.pool, which the caller has set; `pool_partition` is the pool's row in
  // admission.pools. `source`: the partition of ours under whose lock this is said; it must be
  // held. Shard loops pass kShard.
  void AppendToPool(int source, int pool_partition, events::v1::Envelope message);
  // A JobFact; the partition follows from its job id.
  void AppendToJobs(int source, events::v1::Envelope message);

  // Of an object that is left out (quarantine.h); its source as above.
  void AppendLetter(DeadLetter letter) { letters_.push_back(std::move(letter)); }

  const std::vector<Message>& messages() const { return messages_; }
  const std::vector<DeadLetter>& letters() const { return letters_; }
  bool empty() const { return messages_.empty() && letters_.empty(); }
  size_t size() const { return messages_.size(); }

  // For the loops.
  std::vector<Message>& mutable_messages() { return messages_; }
  std::vector<DeadLetter>& mutable_letters() { return letters_; }
  void Truncate(size_t size) { messages_.resize(size); }

 private:
  std::vector<Message> messages_;
  std::vector<DeadLetter> letters_;
};

// The only source that a shard loop has.
inline constexpr int kShard = 0;

}  // namespace fluxqueue::delivery
