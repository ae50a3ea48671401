#include "libs/kafka/consumer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/kafka/ends.h"

namespace fluxqueue::kafka {
namespace {

constexpr int kSeekTimeoutMs = 5000;
// For closing, which waits for no broker.
constexpr Millis kCloseTimeout{5000};
constexpr Millis kClosePoll{10};
constexpr size_t kErrorText = 512;

std::vector<int> Partitions(const rd_kafka_topic_partition_list_t& list) {
  std::vector<int> partitions;
  for (int i = 0; i < list.cnt; ++i) partitions.push_back(list.elems[i].partition);
  std::sort(partitions.begin(), partitions.end());
  return partitions;
}

absl::Status FromError(ErrorHandle error, std::string_view doing) {
  if (error == nullptr) return absl::OkStatus();
  return Annotate(KafkaStatus(rd_kafka_error_code(error.get()), rd_kafka_error_string(error.get())),
                  doing);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Consumer>> Consumer::Create(const ConsumerOptions& options) {
  std::unique_ptr<Consumer> consumer(new Consumer(options));
  RETURN_IF_ERROR(consumer->Join());
  return consumer;
}

absl::Status Consumer::Join() {
  ClientConfig config(options_.brokers, options_.group + "-" + options_.instance);
  const int64_t session = options_.session_timeout.count();
  config.Set("group.id", options_.group)
      .Set("group.instance.id", options_.instance)
      .Set("session.timeout.ms", fmt::format("{}", session))
      .Set("heartbeat.interval.ms", fmt::format("{}", std::clamp<int64_t>(session / 6, 100, 1000)))
      .Set("partition.assignment.strategy", "cooperative-sticky")
      .Set("enable.auto.commit", "false")
      .Set("enable.auto.offset.store", "false")
      // Where the group joined while a broker that had lost its data had no topics yet, nothing is
      // assigned until this member sees that they are there.
      .Set("topic.metadata.refresh.interval.ms", "10000")
      // An offset outside the log is for the owner to judge.
      .Set("auto.offset.reset", "error")
      // The broker answers as soon as there is a record. Whoever is gained waits for the fetch
      // under way.
      .Set("fetch.min.bytes", "1")
      .Set("fetch.wait.max.ms", "500")
      .Set("fetch.error.backoff.ms", "50")
      .Set("fetch.message.max.bytes", "1048576")
      // Who has so much in hand that fetching stops is asked again only a second later (librdkafka
      // 2.0): so much must be more than a second's work.
      .Set("queued.min.messages", "100000")
      .Set("queued.max.messages.kbytes", "32768");
  rd_kafka_conf_set_opaque(config.get(), this);
  rd_kafka_conf_set_rebalance_cb(config.get(), &Consumer::OnRebalance);
  rd_kafka_conf_set_error_cb(config.get(), &Consumer::OnError);
  ASSIGN_OR_RETURN(client_, config.Create(RD_KAFKA_CONSUMER));
  // One queue for records, errors and changes of the assignment.
  rd_kafka_poll_set_consumer(client_.get());
  queue_.reset(rd_kafka_queue_get_consumer(client_.get()));
  const PartitionList topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), options_.topic.c_str(), RD_KAFKA_PARTITION_UA);
  return KafkaStatus(rd_kafka_subscribe(client_.get(), topics.get()),
                     fmt::format("subscribe to topic {}", options_.topic));
}

Consumer::~Consumer() {
  if (client_ == nullptr) return;
  if (queue_ != nullptr) Close();
  queue_.reset();
  rd_kafka_destroy_flags(client_.release(), RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

// librdkafka waits for ever, in destroying, for the answer to a change that it has announced. It
// may announce one until it is closed, as closing itself does. A static member does not leave the
// group by this.
void Consumer::Close() {
  const auto answer = [this] {
    std::vector<Message> unread;
    (void)Poll(kClosePoll, 1000, &unread);
    if (!unanswered_.has_value()) return;
    const std::vector<int> lost = unanswered_->lost;
    (void)(lost.empty() ? Start({}) : Stop(lost));
    assignment_.reset();
  };
  answer();
  // Refused where a fatal error was raised: then nothing is announced any more.
  const ErrorHandle refused(rd_kafka_consumer_close_queue(client_.get(), queue_.get()));
  if (refused != nullptr) return;
  const auto deadline = std::chrono::steady_clock::now() + kCloseTimeout;
  while (rd_kafka_consumer_closed(client_.get()) == 0 &&
         std::chrono::steady_clock::now() < deadline) {
    answer();
  }
}

void Consumer::OnRebalance(rd_kafka_t* client,
                           rd_kafka_resp_err_t event,
                           rd_kafka_topic_partition_list_t* partitions,
                           void* self) {
  auto* consumer = static_cast<Consumer*>(self);
  consumer->assignment_.emplace();
  if (event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    consumer->assignment_->gained = Partitions(*partitions);
  } else {
    consumer->assignment_->lost = Partitions(*partitions);
  }
  consumer->unanswered_ = consumer->assignment_;
  // The answer is the owner's (Start, Stop); let the Poll under way return.
  rd_kafka_yield(client);
}

void Consumer::OnError(rd_kafka_t* client, int code, const char* reason, void* self) {
  auto* consumer = static_cast<Consumer*>(self);
  auto cause = static_cast<rd_kafka_resp_err_t>(code);
  std::array<char, kErrorText> text{};
  if (cause == RD_KAFKA_RESP_ERR__FATAL) {
    cause = rd_kafka_fatal_error(client, text.data(), text.size());
    consumer->error_ = MakeStatus(absl::StatusCode::kFailedPrecondition,
                                  "{}",
                                  fluxqueue::Message(KafkaStatus(cause, text.data())));
    return;
  }
  // One connection of several has ended, which is nothing; when it was the last, another error says
  // so.
  if (cause == RD_KAFKA_RESP_ERR__TRANSPORT) return;
  if (consumer->error_.ok()) consumer->error_ = KafkaStatus(cause, reason);
}

void Consumer::Take(rd_kafka_message_t* record, std::vector<Message>* messages) {
  const MessageHandle owner(record);
  if (record->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    messages->push_back(CopyMessage(*record));
    return;
  }
  if (record->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
      record->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
    out_of_range_.push_back(record->partition);
    return;
  }
  if (error_.ok()) {
    error_ = KafkaStatus(record->err, fmt::format("topic {}", options_.topic));
  }
}

absl::Status Consumer::Poll(Millis timeout, size_t max, std::vector<Message>* messages) {
  error_ = absl::OkStatus();
  buffer_.resize(max);
  // librdkafka waits until the whole batch is full or the time is over. So: wait for one, then take
  // what is there.
  ssize_t count = rd_kafka_consume_batch_queue(
      queue_.get(), static_cast<int>(timeout.count()), buffer_.data(), 1);
  if (count == 1 && max > 1 && !assignment_.has_value()) {
    count += std::max<ssize_t>(
        0, rd_kafka_consume_batch_queue(queue_.get(), 0, buffer_.data() + 1, max - 1));
  }
  for (ssize_t i = 0; i < count; ++i) Take(buffer_[static_cast<size_t>(i)], messages);
  return error_;
}

void Consumer::Wake() {
  rd_kafka_queue_yield(queue_.get());
}

std::optional<Assignment> Consumer::TakeAssignment() {
  return std::exchange(assignment_, std::nullopt);
}

PartitionList Consumer::MakeList(const std::vector<Position>& positions) const {
  PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(positions.size())));
  for (const Position& position : positions) {
    rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(), position.partition)
        ->offset = position.offset;
  }
  return list;
}

std::vector<int> Consumer::Started(const std::vector<int>& among) const {
  rd_kafka_topic_partition_list_t* assigned = nullptr;
  if (rd_kafka_assignment(client_.get(), &assigned) != RD_KAFKA_RESP_ERR_NO_ERROR) return among;
  const PartitionList owner(assigned);
  const std::vector<int> all = Partitions(*assigned);
  std::vector<int> started;
  std::copy_if(among.begin(), among.end(), std::back_inserter(started), [&](int partition) {
    return std::binary_search(all.begin(), all.end(), partition);
  });
  return started;
}

absl::Status Consumer::Start(const std::vector<Position>& positions) {
  std::vector<int> partitions;
  for (const Position& position : positions) partitions.push_back(position.partition);
  if (const auto started = Started(partitions); !started.empty()) {
    RETURN_IF_ERROR(Unassign(started));
  }
  const PartitionList list = MakeList(positions);
  return Answered(FromError(ErrorHandle(rd_kafka_incremental_assign(client_.get(), list.get())),
                            fmt::format("start partitions of topic {}", options_.topic)));
}

absl::Status Consumer::Stop(const std::vector<int>& partitions) {
  return Answered(Unassign(Started(partitions)));
}

absl::Status Consumer::Unassign(const std::vector<int>& partitions) {
  std::vector<Position> positions;
  for (const int partition : partitions) positions.push_back({partition, RD_KAFKA_OFFSET_INVALID});
  const PartitionList list = MakeList(positions);
  return FromError(ErrorHandle(rd_kafka_incremental_unassign(client_.get(), list.get())),
                   fmt::format("stop partitions of topic {}", options_.topic));
}

absl::Status Consumer::Answered(absl::Status status) {
  if (status.ok()) unanswered_.reset();
  return status;
}

absl::Status Consumer::Seek(const std::vector<Position>& positions) {
  const PartitionList list = MakeList(positions);
  RETURN_IF_ERROR(
      FromError(ErrorHandle(rd_kafka_seek_partitions(client_.get(), list.get(), kSeekTimeoutMs)),
                fmt::format("seek in topic {}", options_.topic)));
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& item = list->elems[i];
    RETURN_IF_ERROR(KafkaStatus(
        item.err, fmt::format("seek in topic {} partition {}", options_.topic, item.partition)));
  }
  return absl::OkStatus();
}

std::vector<int> Consumer::TakeOutOfRange() {
  return std::exchange(out_of_range_, {});
}

absl::StatusOr<std::map<int, Watermarks>> Consumer::QueryWatermarks(
    const std::vector<int>& partitions, Millis timeout) {
  return QueryEnds(client_.get(), options_.topic, partitions, timeout);
}

absl::StatusOr<std::map<int, int64_t>> Consumer::FirstAfter(const std::map<int, Millis>& times,
                                                            Millis timeout) {
  std::vector<Position> wanted;
  for (const auto& [partition, time] : times) wanted.push_back({partition, time.count() + 1});
  const PartitionList list = MakeList(wanted);
  RETURN_IF_ERROR(AskOffsets(client_.get(), list.get(), timeout, "records by their time"));
  std::map<int, int64_t> first;
  for (int i = 0; i < list->cnt; ++i) {
    if (list->elems[i].offset >= 0) first[list->elems[i].partition] = list->elems[i].offset;
  }
  return first;
}

int64_t Consumer::CachedEnd(int partition) {
  int64_t low = -1;
  int64_t high = -1;
  (void)rd_kafka_get_watermark_offsets(
      client_.get(), options_.topic.c_str(), partition, &low, &high);
  return high;
}

}  // namespace fluxqueue::kafka
