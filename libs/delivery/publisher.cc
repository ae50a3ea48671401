#include "libs/delivery/publisher.h"

#include <utility>

#include "libs/base/failure_point.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::delivery {
namespace {

constexpr size_t kMaxBytes = 32 * 1024 * 1024;
constexpr size_t kMaxRecords = 100'000;
constexpr Millis kPatience{3000};
constexpr Millis kQueryTimeout{2000};

}  // namespace

Publisher::Publisher(const LoopOptions& options, const Clock& clock, Stats& stats)
    : options_(options),
      clock_(clock),
      stats_(stats),
      backoff_(options.retry_min, options.retry_max, options.seed),
      progress_at_(clock.Monotonic()) {}

void Publisher::Add(OutboxRow row) {
  if (options_.signer != nullptr) SignRecords(*options_.signer, &row);
  tracker_.Add(std::move(row));
}

bool Publisher::Full() const {
  return tracker_.bytes() > kMaxBytes || tracker_.records() > kMaxRecords;
}

bool Publisher::Ensure() {
  if (producer_ != nullptr) return true;
  if (clock_.Monotonic() < retry_at_) return false;
  auto producer = options_.bus->Open(
      options_.brokers, options_.service + "-" + options_.instance, [this](uint64_t row) {
        FailurePoint("publish.after");
        tracker_.Acknowledge(row);
        ++stats_.sent;
        backoff_.Reset();
        progress_at_ = clock_.Monotonic();
        if (!status_.ok()) status_ = absl::OkStatus();
      });
  if (!producer.ok()) {
    GiveUp(producer.status());
    return false;
  }
  producer_ = std::move(producer).value();
  tracker_.Restart();
  return true;
}

// By value: the status may be the producer's own.
void Publisher::GiveUp(absl::Status status) {
  producer_.reset();
  ++stats_.producer_restarts;
  status_ = std::move(status);
  retry_at_ = clock_.Monotonic() + backoff_.Next();
  LogWarning("publishing begins anew", {{"because", Message(status_)}});
}

void Publisher::Pump(Millis wait) {
  if (!Ensure()) return;
  while (const auto item = tracker_.Next()) {
    const WireRecord& record = item->record;
    FailurePoint("publish.before");
    const absl::Status status = producer_->Produce(item->target.topic,
                                                   item->target.partition,
                                                   record.key,
                                                   record.value,
                                                   record.headers,
                                                   item->row);
    // The producer's queue is full: it goes on when acknowledgements have made room.
    if (absl::IsUnavailable(status)) break;
    if (!status.ok()) return GiveUp(status);
    tracker_.Advance();
  }
  producer_->Poll(wait);
  if (!producer_->failed().ok()) GiveUp(producer_->failed());
  stats_.unpublished = tracker_.records();
  const auto now = clock_.Monotonic();
  if (tracker_.records() == 0) progress_at_ = now;
  if (now - progress_at_ > kPatience && status_.ok()) {
    status_ = Unavailable("Kafka at {} has acknowledged nothing for {} s, {} messages wait for it",
                          options_.brokers.bootstrap,
                          kPatience.count() / 1000,
                          tracker_.records());
  }
}

absl::StatusOr<int64_t> Publisher::QueryEnd(const Target& target) {
  if (!Ensure()) return status_;
  return producer_->QueryEnd(target.topic, target.partition, kQueryTimeout);
}

void Publisher::Drain(Millis timeout) {
  const auto deadline = clock_.Monotonic() + timeout;
  while (tracker_.records() > 0 && clock_.Monotonic() < deadline) Pump(Millis{20});
}

}  // namespace fluxqueue::delivery
