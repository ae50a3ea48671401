#include "tests/simulation/sim_bus.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/sim_parts.h"

namespace fluxqueue::simulation {

using kafka::Message;

namespace {

class ProcessBus final : public kafka::Bus {
 public:
  ProcessBus(SimBus& bus, const Owner& owner) : bus_(bus), owner_(owner) {}
  absl::StatusOr<std::unique_ptr<kafka::Subscription>> Join(
      const kafka::ConsumerOptions& options) override {
    return JoinGroup(bus_, owner_, options);
  }
  absl::StatusOr<std::unique_ptr<kafka::Appender>> Open(
      const kafka::Brokers&, std::string_view, kafka::OnAcknowledged acknowledged) override {
    return OpenAppender(bus_, std::move(acknowledged));
  }
  absl::Status MakeTopics(const kafka::Brokers&,
                          std::string_view,
                          const kafka::TopicNames&) override {
    return absl::OkStatus();
  }

 private:
  SimBus& bus_;
  const Owner& owner_;
};

}  // namespace

std::shared_ptr<kafka::Bus> SimBus::For(const Owner& owner) {
  return std::make_shared<ProcessBus>(*this, owner);
}

SimBus::Log& SimBus::LogOf(const std::string& topic, int partition) {
  return logs_[{topic, partition}];
}

void SimBus::Append(const std::string& topic, int partition, Message message) {
  Log& log = LogOf(topic, partition);
  message.offset = log.end();
  message.append_time = WallTime(scheduler_, faults_.skew);
  log.last_append = message.append_time;
  ++changes_;
  if (appended_) appended_(topic, message);
  log.records.push_back(std::move(message));
}

std::vector<std::string> SimBus::Living(Group& group) {
  std::vector<std::string> living;
  const TimePoint now = scheduler_.now();
  for (const auto& [instance, member] : group.members) {
    const Owner& owner = *member.owner;
    const bool gone =
        member.subscription == nullptr && member.gone_at + member.session_timeout < now;
    const bool silent =
        owner.frozen_until > now && owner.frozen_since + member.session_timeout < now;
    if (!gone && !silent) {
      living.push_back(instance);
      continue;
    }
    std::erase_if(group.owners, [&](const auto& owned) { return owned.second == instance; });
  }
  return living;
}

void SimBus::LoseTail(const std::string& topic, int partition, size_t records) {
  ++changes_;
  Log& log = LogOf(topic, partition);
  log.records.resize(log.records.size() - std::min(records, log.records.size()));
}

void SimBus::Cut(const std::string& topic, int partition, size_t records) {
  ++changes_;
  Log& log = LogOf(topic, partition);
  for (; records > 0 && !log.records.empty(); --records, ++log.base) log.records.pop_front();
}

void SimBus::MakeAnew(const std::string& topic) {
  ++changes_;
  for (auto& [key, log] : logs_) {
    if (key.first == topic) log = {};
  }
}

}  // namespace fluxqueue::simulation
