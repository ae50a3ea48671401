#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::simulation {
namespace {

// What a line of the story shows of a message.
constexpr size_t kMostShown = 160;

std::string Shown(const events::v1::Envelope& envelope) {
  std::string text = envelope.ShortDebugString();
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "…";
  return text;
}

}  // namespace

World::World(const Trial& trial)
    : scheduler_(trial.seed),
      bus_(scheduler_, kPartitions),
      database_(scheduler_),
      without_(trial.without),
      tell_(trial.tell) {
  database_.faults().same_incarnation = lacks(Without::kIncarnation);
  bus_.OnAppend([this](const std::string& topic, const kafka::Message& message) {
    Appended(topic, message);
  });
}

void World::Fail(std::string what) {
  if (!error_.empty()) return;
  error_ = std::move(what);
  Say("FAILED: " + error_);
}

void World::Say(const std::string& line) const {
  if (!tell_) return;
  tell_(fmt::format(
      "{:8.3f}  {}", static_cast<double>(SinceBeginning(scheduler_).count()) / 1000, line));
}

void World::Handled(const std::string& message) {
  if (!handled_.insert(message).second) Fail(message + " is handled twice");
}

void World::LoseCommits(size_t commits) {
  Forget();
  handled_.clear();
  went_back_ = true;
  counts_["commits lost"] += database_.LoseLast(commits);
}

bool World::IsCommitted(const std::string& topic,
                        int partition,
                        const std::string& stream,
                        uint64_t sequence) {
  const std::string service = stream.substr(0, stream.find('/'));
  const auto& outbox = database_.DeliveryOf(service).outbox.rows();
  return std::ranges::any_of(outbox, [&](const auto& numbered) {
    const delivery::OutboxRow& row = numbered.second;
    return row.stream == stream && row.target.topic == topic && row.target.partition == partition &&
           row.last_seq >= sequence;
  });
}

void World::Appended(const std::string& topic, const kafka::Message& message) {
  if (topic == kDeadTopic) return;  // it has no streams
  events::v1::Envelope envelope;
  if (!envelope.ParseFromString(message.value)) return;
  hash_ = HashOf(hash_, std::hash<std::string>()(message.value));
  const std::string id =
      fmt::format("{} {} {} {}", topic, message.partition, envelope.stream(), envelope.sequence());
  if (tells()) Say(fmt::format("log: {}  {}", id, Shown(envelope)));
  const auto [known, first] = values_.emplace(id, message.value);
  if (!first) {
    ++counts_["repeats in logs"];
    if (known->second != message.value) Fail("two messages are called " + id);
  } else if (!went_back_ &&
             !IsCommitted(topic, message.partition, envelope.stream(), envelope.sequence())) {
    Fail(id + " was never committed");
  }
}

Outcome World::Finish() {
  counts_["steps"] = scheduler_.steps();
  counts_["virtual seconds"] = static_cast<uint64_t>(SinceBeginning(scheduler_).count() / 1000);
  return {error_, std::move(counts_), HashOf(hash_, scheduler_.steps())};
}

bool Lacking::Lacks(delivery::Safety safety) const {
  switch (safety) {
    case delivery::Safety::kEpoch:
      return world_.lacks(Without::kEpoch);
    case delivery::Safety::kSequence:
      return world_.lacks(Without::kSequence);
    case delivery::Safety::kSettle:
      return world_.lacks(Without::kSettle);
    case delivery::Safety::kQuarantine:
      return world_.lacks(Without::kQuarantine);
  }
  return false;
}

}  // namespace fluxqueue::simulation
