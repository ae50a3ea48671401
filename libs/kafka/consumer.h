// A member of a consumer group, whose owner decides when an assignment takes effect and from which
// offset.
//
// Nothing is committed to Kafka: offsets live in Postgres. Static membership (`group.instance.id`)
// lets a restarted service have its partitions back without a rebalance; partitions of a killed one
// move after session_timeout. The protocol is cooperative: what a member keeps is not disturbed by
// what it gains or loses.
//
// A change of the assignment waits until the owner has answered it:
//
//   consumer->Poll(timeout, 1000, &messages);
//   if (auto change = consumer->TakeAssignment()) {
//     // gained: make ready; messages follow, from that offset
//     consumer->Start({{partition, offset} …});
//     // lost: forget; no further messages
//     consumer->Stop(partitions);
//   }
//
// Heartbeats go on meanwhile (up to `max.poll.interval.ms` between two polls). Confined to one
// thread, save Wake().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kafka/bus.h"
#include "libs/kafka/client.h"
#include "libs/kafka/message.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kafka {

class Consumer final : public Subscription {
 public:
  // Joins the group in the background. Fails only on bad options.
  static absl::StatusOr<std::unique_ptr<Consumer>> Create(const ConsumerOptions& options);
  ~Consumer() override;
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  // Waits up to `timeout` for a first record, then appends it and what else is there already, up to
  // `max`. Returns early on Wake() and on a change of the assignment. Errors: Unavailable (the
  // broker is away: it goes on by itself), OutOfRange (a partition's offset is not in the log: see
  // TakeOutOfRange), FailedPrecondition (fenced, refused …: this consumer is done for, make a new
  // one).
  absl::Status Poll(Millis timeout, size_t max, std::vector<Message>* messages) override;

  // Thread-safe: the Poll under way, or else the next one, returns at once.
  void Wake() override;

  // The change that waits for an answer, once.
  std::optional<Assignment> TakeAssignment() override;
  // Answers `gained`. To be called also with an empty list. Those that run begin again there.
  absl::Status Start(const std::vector<Position>& positions) override;
  // Answers `lost`. Those that do not run are left alone.
  absl::Status Stop(const std::vector<int>& partitions) override;
  // Goes on from another offset. REQUIRES: the partitions were started.
  absl::Status Seek(const std::vector<Position>& positions);
  // Partitions whose offset was outside the log since the last call.
  std::vector<int> TakeOutOfRange() override;

  // Asks the brokers. Unavailable: one of the partitions cannot be asked about.
  absl::StatusOr<std::map<int, Watermarks>> QueryWatermarks(const std::vector<int>& partitions,
                                                            Millis timeout) override;
  // The first record of each partition that was appended later than the time; who has none is not
  // in the answer. Asks the brokers. Unavailable: one of the partitions cannot be asked about.
  absl::StatusOr<std::map<int, int64_t>> FirstAfter(const std::map<int, Millis>& times,
                                                    Millis timeout) override;
  // The end of the log as the last fetch saw it; -1: not known yet. Asks nobody.
  int64_t CachedEnd(int partition) override;

  const std::string& topic() const { return options_.topic; }

 private:
  explicit Consumer(const ConsumerOptions& options) : options_(options) {}

  absl::Status Join();
  static void OnRebalance(rd_kafka_t* client,
                          rd_kafka_resp_err_t event,
                          rd_kafka_topic_partition_list_t* partitions,
                          void* self);
  static void OnError(rd_kafka_t* client, int code, const char* reason, void* self);
  void Close();
  // Of these the ones that librdkafka has assigned: the group may have taken some meanwhile, or
  // given again what it had not been seen to take.
  std::vector<int> Started(const std::vector<int>& among) const;
  absl::Status Unassign(const std::vector<int>& partitions);
  // A change that was answered in vain still waits for its answer: librdkafka could not be closed.
  absl::Status Answered(absl::Status status);
  // Takes one record out of the queue's; errors are kept in error_.
  void Take(rd_kafka_message_t* record, std::vector<Message>* messages);
  PartitionList MakeList(const std::vector<Position>& positions) const;

  const ConsumerOptions options_;
  ClientHandle client_;
  QueueHandle queue_;
  std::vector<rd_kafka_message_t*> buffer_;
  std::optional<Assignment> assignment_;  // that TakeAssignment has not given yet
  std::optional<Assignment> unanswered_;
  std::vector<int> out_of_range_;
  absl::Status error_;
};

}  // namespace fluxqueue::kafka
