#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "tests/simulation/sim_parts.h"

namespace fluxqueue::simulation {

using kafka::Assignment;
using kafka::Message;
using kafka::Position;
using kafka::Watermarks;

class SimSubscription final : public kafka::Subscription {
 public:
  static constexpr Millis kLookInterval{250};

  SimSubscription(SimBus& bus, const Owner& owner, kafka::ConsumerOptions options)
      : bus_(bus),
        options_(std::move(options)),
        group_(bus.groups_[{options_.topic, options_.group}]),
        fences_(bus.fences_) {
    for (int partition = 0; partition < bus.partitions_; ++partition) {
      logs_.push_back(&bus.LogOf(options_.topic, partition));
    }
    // A new member: what it had before is to be given again.
    std::erase_if(group_.owners,
                  [this](const auto& owned) { return owned.second == options_.instance; });
    ++bus_.changes_;
    group().members[options_.instance] = {&owner, this, {}, options_.session_timeout};
  }
  ~SimSubscription() override {
    const auto self = group().members.find(options_.instance);
    if (self == group().members.end() || self->second.subscription != this) return;
    ++bus_.changes_;
    self->second.subscription = nullptr;
    self->second.gone_at = bus_.scheduler_.now();
  }

  absl::Status Poll(Millis timeout, size_t max, std::vector<Message>* messages) override {
    polled_ = bus_.scheduler_.now();
    const TimePoint until = bus_.scheduler_.now() + timeout;
    const Scheduler::Ready ready = [this] {
      return woken_ || fences_ != bus_.fences_ || IsReady();
    };
    if (timeout > Millis(0)) {
      bus_.scheduler_.Wait(ready, until);
    } else {
      bus_.scheduler_.GiveWay();
    }
    woken_ = false;
    if (fences_ != bus_.fences_) {
      return MakeStatus(absl::StatusCode::kFailedPrecondition, "simulated: fenced");
    }
    if (bus_.away()) return Unavailable("simulated: the brokers are away");
    NoteLost();
    if (TakeNews()) return absl::OkStatus();
    for (auto it = positions_.begin(); it != positions_.end();) {
      if (IsOutOfRange(it->first, it->second)) {
        out_of_range_.push_back(it->first);
        it = positions_.erase(it);
      } else {
        ++it;
      }
    }
    Take(max, messages);
    return absl::OkStatus();
  }
  std::string Describe() const {
    return fmt::format("reads {} of its {} partitions, {}, polled {} ms ago",
                       positions_.size(),
                       mine_.size(),
                       unanswered_ ? "has news to answer" : "has no news",
                       std::chrono::floor<Millis>(bus_.scheduler_.now() - polled_).count());
  }
  void Wake() override { woken_ = true; }
  std::optional<Assignment> TakeAssignment() override {
    return std::exchange(assignment_, std::nullopt);
  }
  absl::Status Start(const std::vector<Position>& positions) override {
    ++bus_.changes_;
    unanswered_ = false;
    started_once_ = true;
    for (const Position& position : positions) {
      std::string& owner = group().owners[position.partition];
      if (!owner.empty() && owner != options_.instance) {
        return MakeStatus(absl::StatusCode::kFailedPrecondition, "simulated: the group moved on");
      }
      owner = options_.instance;
      positions_[position.partition] = position.offset;
      mine_.insert(position.partition);
    }
    return absl::OkStatus();
  }
  absl::Status Stop(const std::vector<int>& partitions) override {
    ++bus_.changes_;
    unanswered_ = false;
    for (const int partition : partitions) {
      positions_.erase(partition);
      mine_.erase(partition);
      const auto owner = group().owners.find(partition);
      if (owner != group().owners.end() && owner->second == options_.instance) {
        group().owners.erase(owner);
      }
    }
    return absl::OkStatus();
  }
  std::vector<int> TakeOutOfRange() override { return std::exchange(out_of_range_, {}); }
  absl::StatusOr<std::map<int, Watermarks>> QueryWatermarks(const std::vector<int>& partitions,
                                                            Millis /*timeout*/) override {
    std::map<int, Watermarks> marks;
    for (const int partition : partitions) {
      bus_.scheduler_.GiveWay();
      if (bus_.away()) return Unavailable("simulated: the brokers are away");
      const SimBus::Log& log = LogOf(partition);
      marks[partition] = {log.base, log.end()};
    }
    return marks;
  }
  absl::StatusOr<std::map<int, int64_t>> FirstAfter(const std::map<int, Millis>& times,
                                                    Millis /*timeout*/) override {
    if (bus_.away()) return Unavailable("simulated: the brokers are away");
    std::map<int, int64_t> first;
    for (const auto& [partition, time] : times) {
      for (const Message& record : LogOf(partition).records) {
        if (record.append_time <= time) continue;
        first[partition] = record.offset;
        break;
      }
    }
    return first;
  }
  int64_t CachedEnd(int partition) override { return LogOf(partition).end(); }

 private:
  SimBus::Group& group() { return group_; }
  SimBus::Log& LogOf(int partition) { return *logs_[static_cast<size_t>(partition)]; }

  // Asked at each step of anybody: it is looked only where something may have changed.
  bool IsReady() {
    const TimePoint now = bus_.scheduler_.now();
    if (bus_.away() || (seen_ == bus_.changes_ && now < look_at_)) return false;
    if (HasNews() || HasRecords() || HasOutOfRange()) return true;
    seen_ = bus_.changes_;
    look_at_ = now + kLookInterval;  // somebody may have gone, or stand still for too long
    return false;
  }
  bool IsOutOfRange(int partition, int64_t position) {
    const SimBus::Log& log = LogOf(partition);
    return position < log.base || position > log.end();
  }
  bool HasOutOfRange() {
    return std::ranges::any_of(positions_,
                               [this](const auto& p) { return IsOutOfRange(p.first, p.second); });
  }
  bool HasRecords() {
    return std::ranges::any_of(positions_, [this](const auto& p) {
      return p.second >= LogOf(p.first).base && p.second < LogOf(p.first).end();
    });
  }
  // What the group has taken while we stood still.
  void NoteLost() {
    if (unanswered_) return;
    Assignment lost;
    for (const int partition : mine_) {
      const auto owner = group().owners.find(partition);
      if (owner == group().owners.end() || owner->second != options_.instance) {
        lost.lost.push_back(partition);
      }
    }
    if (lost.lost.empty()) return;
    for (const int partition : lost.lost) positions_.erase(partition);
    pending_ = std::move(lost);
  }
  Assignment News() {
    Assignment news;
    const std::vector<std::string> living = bus_.Living(group());
    for (int partition = 0; partition < bus_.partitions_; ++partition) {
      const bool for_us =
          !living.empty() &&
          living[static_cast<size_t>(partition) % living.size()] == options_.instance;
      const auto owner = group().owners.find(partition);
      const bool free = owner == group().owners.end();
      const bool ours = !free && owner->second == options_.instance;
      if (for_us && (free || (ours && !mine_.contains(partition)))) {
        news.gained.push_back(partition);
      }
      if (!for_us && ours && mine_.contains(partition)) news.lost.push_back(partition);
    }
    return news;
  }
  bool HasNews() {
    if (pending_.has_value()) return true;
    if (unanswered_) return false;
    for (const int partition : mine_) {
      const auto owner = group().owners.find(partition);
      if (owner == group().owners.end() || owner->second != options_.instance) return true;
    }
    const Assignment news = News();
    return !news.gained.empty() || !news.lost.empty() || !started_once_;
  }
  bool TakeNews() {
    if (!pending_.has_value()) {
      if (unanswered_) return false;
      Assignment news = News();
      if (!news.lost.empty()) news.gained.clear();
      if (news.gained.empty() && news.lost.empty() && started_once_) return false;
      pending_ = std::move(news);
    }
    assignment_ = std::exchange(pending_, std::nullopt);
    ++bus_.changes_;
    // From here on they are ours, whichever member joins before we have answered.
    for (const int partition : assignment_->gained) {
      group().owners[partition] = options_.instance;
      mine_.insert(partition);
    }
    unanswered_ = true;
    return true;
  }
  void Take(size_t max, std::vector<Message>* messages) {
    Chance& chance = bus_.scheduler_.chance();
    const bool few = chance.OneIn(bus_.faults_.few_one_in);
    for (auto& [partition, position] : positions_) {
      const SimBus::Log& log = LogOf(partition);
      while (position < log.end() && max > 0) {
        if (few && chance.OneIn(3)) break;
        messages->push_back(log.records[static_cast<size_t>(position - log.base)]);
        ++position;
        --max;
      }
    }
  }

  SimBus& bus_;
  const kafka::ConsumerOptions options_;
  SimBus::Group& group_;
  std::vector<SimBus::Log*> logs_;
  const uint64_t fences_;
  std::map<int, int64_t> positions_;
  std::set<int> mine_;
  std::vector<int> out_of_range_;
  std::optional<Assignment> pending_;
  std::optional<Assignment> assignment_;
  bool unanswered_ = false;
  bool started_once_ = false;
  bool woken_ = false;
  uint64_t seen_ = ~uint64_t{0};
  TimePoint look_at_{};
  TimePoint polled_{};
};

std::string SimBus::Describe() const {
  std::string text;
  for (const auto& [key, group] : groups_) {
    for (const auto& [instance, member] : group.members) {
      text +=
          fmt::format("{}: {}; ",
                      instance,
                      member.subscription == nullptr ? "gone" : member.subscription->Describe());
    }
    for (const auto& [partition, owner] : group.owners) {
      text += fmt::format("{}:{} ", partition, owner);
    }
  }
  return text;
}

std::unique_ptr<kafka::Subscription> JoinGroup(SimBus& bus,
                                               const Owner& owner,
                                               const kafka::ConsumerOptions& options) {
  return std::make_unique<SimSubscription>(bus, owner, options);
}

}  // namespace fluxqueue::simulation
