#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "libs/base/status_macros.h"
#include "tests/simulation/sim_parts.h"

namespace fluxqueue::simulation {

using kafka::Message;

class SimAppender final : public kafka::Appender {
 public:
  SimAppender(SimBus& bus, kafka::OnAcknowledged acknowledged)
      : bus_(bus), acknowledged_(std::move(acknowledged)), flight_(std::make_shared<Flight>()) {}
  // What is on its way may come all the same.
  ~SimAppender() override { Break(); }

  absl::Status Produce(const std::string& topic,
                       int partition,
                       std::string_view key,
                       std::string_view value,
                       const kafka::Headers& headers,
                       uint64_t id) override {
    Scheduler& scheduler = bus_.scheduler_;
    if (!failed_.ok()) return absl::OkStatus();  // it appends nothing more
    flight_->records.push_back({topic, partition, {}, id, {}});
    Record& record = flight_->records.back();
    record.message.partition = partition;
    record.message.key = key;
    record.message.value = value;
    record.message.headers = headers;
    if (scheduler.chance().OneIn(bus_.faults_.fail_one_in)) fail_after_ = flight_->records.size();
    last_append_ = std::max(last_append_, scheduler.now()) +
                   Millis(scheduler.chance().Between(0, bus_.faults_.latest_append.count()));
    last_append_ = std::max(last_append_, bus_.faults_.away_until);
    scheduler.At(last_append_, [&bus = bus_, flight = flight_] { Land(bus, *flight); });
    return absl::OkStatus();
  }
  void Poll(Millis timeout) override {
    Scheduler& scheduler = bus_.scheduler_;
    const Scheduler::Ready ready = [this] { return Answered() || fail_after_ > 0; };
    if (timeout > Millis(0)) {
      scheduler.Wait(ready, scheduler.now() + timeout);
    } else if (scheduler.chance().OneIn(4)) {
      scheduler.GiveWay();
    }
    if (fail_after_ > 0) {
      failed_ = Unavailable("simulated: a record was refused");
      return Break();
    }
    while (Answered()) {
      const uint64_t id = flight_->landed.front().first;
      flight_->landed.pop_front();
      acknowledged_(id);
    }
  }
  absl::StatusOr<int64_t> QueryEnd(const std::string& topic,
                                   int partition,
                                   Millis /*timeout*/) override {
    bus_.scheduler_.GiveWay();
    if (bus_.away()) return Unavailable("simulated: the brokers are away");
    return bus_.LogOf(topic, partition).end();
  }
  const absl::Status& failed() const override { return failed_; }

 private:
  struct Record {
    std::string topic;
    int partition = 0;
    Message message;
    uint64_t id = 0;
    TimePoint answer_at{};
  };
  struct Flight {
    std::deque<Record> records;                         // not in the log yet
    std::deque<std::pair<uint64_t, TimePoint>> landed;  // not acknowledged yet
  };

  static void Land(SimBus& bus, Flight& flight) {
    if (flight.records.empty()) return;
    Record record = std::move(flight.records.front());
    flight.records.pop_front();
    bus.Append(record.topic, record.partition, std::move(record.message));
    const TimePoint before =
        flight.landed.empty() ? bus.scheduler_.now() : flight.landed.back().second;
    flight.landed.emplace_back(
        record.id,
        std::max(before, bus.scheduler_.now()) +
            Millis(bus.scheduler_.chance().Between(0, bus.faults_.latest_answer.count())));
  }
  bool Answered() const {
    return !flight_->landed.empty() && flight_->landed.front().second <= bus_.scheduler_.now();
  }
  // The last of what is on its way are lost, the first come unanswered.
  void Break() {
    std::deque<Record>& records = flight_->records;
    if (!records.empty()) {
      const uint64_t lost = bus_.scheduler_.chance().Pick(records.size() + 1);
      records.resize(records.size() - lost);
    }
    fail_after_ = 0;
  }

  SimBus& bus_;
  const kafka::OnAcknowledged acknowledged_;
  std::shared_ptr<Flight> flight_;
  TimePoint last_append_{};
  size_t fail_after_ = 0;
  absl::Status failed_;
};

std::unique_ptr<kafka::Appender> OpenAppender(SimBus& bus, kafka::OnAcknowledged acknowledged) {
  return std::make_unique<SimAppender>(bus, std::move(acknowledged));
}

}  // namespace fluxqueue::simulation
