// The messages of the batch under way. They get their stream, sequence and time when the batch
// commits, and are published after the commit. Confined to the loop's thread; services' tests make
// one of their own and look inside.
#pragma once

#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

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

  const std::vector<Message>& messages() const { return messages_; }
  bool empty() const { return messages_.empty(); }
  size_t size() const { return messages_.size(); }

  // For the loops.
  std::vector<Message>& mutable_messages() { return messages_; }
  void Truncate(size_t size) { messages_.resize(size); }
  void Clear() { messages_.clear(); }

 private:
  std::vector<Message> messages_;
};

// The only source that a shard loop has.
inline constexpr int kShard = 0;

}  // namespace fluxqueue::delivery
