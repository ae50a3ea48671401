// A log in memory that does what Kafka may do at its worst: appends late, acknowledges later or
// never, loses what was not acknowledged, and its acknowledged end; is cut, vanishes, has a wrong
// clock; gives partitions to others, also while their owner only stands still.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libs/kafka/bus.h"
#include "tests/simulation/scheduler.h"

namespace fluxqueue::simulation {

class SimBus {
 public:
  struct Faults {
    Millis latest_append{5};   // after Produce
    Millis latest_answer{5};   // after that
    uint64_t fail_one_in = 0;  // of records: the producer fails with it, or only its answer is lost
    uint64_t few_one_in = 4;   // of polls: not all that is there
    Millis skew{0};            // of the broker's clock
    TimePoint away_until{};
  };
  // As it is in the log.
  using OnAppended = std::function<void(const std::string& topic, const kafka::Message& message)>;

  SimBus(Scheduler& scheduler, int partitions) : scheduler_(scheduler), partitions_(partitions) {}

  // What a process sees of it.
  std::shared_ptr<kafka::Bus> For(const Owner& owner);

  Faults& faults() { return faults_; }
  void OnAppend(OnAppended appended) { appended_ = std::move(appended); }
  bool away() const { return faults_.away_until > scheduler_.now(); }

  // ---- faults at a moment
  void LoseTail(const std::string& topic, int partition, size_t records);
  void Cut(const std::string& topic, int partition, size_t records);
  void MakeAnew(const std::string& topic);
  // The members of all groups are refused once.
  void Fence() { ++fences_; }

  std::string Describe() const;  // the groups

  struct Log {
    int64_t base = 0;
    std::deque<kafka::Message> records;
    Millis last_append{0};
    int64_t end() const { return base + static_cast<int64_t>(records.size()); }
  };
  Log& LogOf(const std::string& topic, int partition);
  const std::map<std::pair<std::string, int>, Log>& logs() const { return logs_; }

 private:
  friend class SimSubscription;
  friend class SimAppender;

  struct Member {
    const Owner* owner;
    class SimSubscription* subscription;  // null: it is gone
    TimePoint gone_at{};
    Millis session_timeout{};
  };
  struct Group {
    std::map<std::string, Member> members;  // by instance
    std::map<int, std::string> owners;      // of partitions
  };

  void Append(const std::string& topic, int partition, kafka::Message message);
  // Those who count as members now, and who of them is to have the partition.
  std::vector<std::string> Living(Group& group);

  Scheduler& scheduler_;
  const int partitions_;
  Faults faults_;
  OnAppended appended_;
  uint64_t fences_ = 0;
  uint64_t changes_ = 0;  // of logs and groups
  std::map<std::pair<std::string, int>, Log> logs_;
  std::map<std::pair<std::string, std::string>, Group> groups_;  // by topic and group
};

}  // namespace fluxqueue::simulation
