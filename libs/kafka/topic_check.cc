#include "libs/kafka/topic_check.h"

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fluxqueue::kafka {
namespace {

constexpr int64_t kShortestRetentionMs = int64_t{7} * 24 * 3600 * 1000;

// Judges one topic, setting by setting.
class Judge {
 public:
  Judge(const TopicSpec& spec, const TopicState& state) : spec_(spec), state_(state) {}

  std::vector<TopicFault> All() && {
    JudgeShape();
    JudgeLosses();
    JudgeHistory();
    return std::move(faults_);
  }

 private:
  void JudgeShape() {
    if (state_.partitions < spec_.partitions) {
      Add(true,
          fmt::format("has {} partitions, {} are needed: raise its partition count",
                      state_.partitions,
                      spec_.partitions));
    }
    const std::string stamped = Wanted("message.timestamp.type");
    const std::string stamps = Value("message.timestamp.type");
    if (!stamped.empty() && !stamps.empty() && stamps != stamped) {
      Add(true, Must("message.timestamp.type", stamps, "be " + stamped));
    }
    const auto wanted = ToNumber(Wanted("max.message.bytes"));
    const auto largest = Number("max.message.bytes");
    if (wanted && largest && *largest < *wanted) {
      Add(true,
          Must("max.message.bytes",
               Value("max.message.bytes"),
               fmt::format("be at least {}, or large jobs cannot be told of", *wanted)));
    }
    if (Value("cleanup.policy").find("compact") != std::string::npos) {
      Add(true,
          Must("cleanup.policy",
               Value("cleanup.policy"),
               "be delete: compaction keeps only the last event of each job"));
    }
  }

  void JudgeLosses() {
    const auto insync = Number("min.insync.replicas");
    if (insync && *insync > state_.replicas) {
      Add(true,
          Must("min.insync.replicas",
               Value("min.insync.replicas"),
               fmt::format("not exceed its {} replicas, or no message is taken", state_.replicas)));
    } else if (insync && *insync < 2 && state_.replicas > 1) {
      Add(false,
          Must("min.insync.replicas",
               Value("min.insync.replicas"),
               "be 2 or more, or the loss of one broker can lose acknowledged messages"));
    }
    if (Value("unclean.leader.election.enable") == "true") {
      Add(false,
          Must("unclean.leader.election.enable",
               "true",
               "be false, or a broker that lagged can drop acknowledged messages"));
    }
  }

  void JudgeHistory() {
    const auto kept = Number("retention.ms");
    if (kept && *kept >= 0 && *kept < kShortestRetentionMs) {
      Add(false,
          Must("retention.ms",
               Value("retention.ms"),
               fmt::format("be at least {} (7 days): replay reaches no further back, and a service "
                           "that is away longer misses messages",
                           kShortestRetentionMs)));
    }
    if (const auto bytes = Number("retention.bytes"); bytes && *bytes >= 0) {
      Add(false,
          Must("retention.bytes",
               Value("retention.bytes"),
               "be -1: a busy day would delete messages that are not yet read"));
    }
  }

  // Empty: there is no such setting.
  static std::string Find(const std::map<std::string, std::string>& config,
                          const std::string& key) {
    const auto found = config.find(key);
    return found == config.end() ? std::string() : found->second;
  }
  std::string Value(const std::string& key) const { return Find(state_.config, key); }
  std::string Wanted(const std::string& key) const { return Find(spec_.config, key); }
  std::optional<int64_t> Number(const std::string& key) const { return ToNumber(Value(key)); }
  static std::optional<int64_t> ToNumber(const std::string& text) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && !text.empty() ? std::optional(number) : std::nullopt;
  }
  static std::string Must(std::string_view key, std::string_view value, std::string_view what) {
    return fmt::format("has {}={}, it must {}", key, value, what);
  }
  void Add(bool fatal, const std::string& what) {
    faults_.push_back({fatal, fmt::format("topic {} {}", spec_.name, what)});
  }

  const TopicSpec& spec_;
  const TopicState& state_;
  std::vector<TopicFault> faults_;
};

}  // namespace

std::vector<TopicFault> JudgeTopic(const TopicSpec& spec, const TopicState& state) {
  return Judge(spec, state).All();
}

}  // namespace fluxqueue::kafka
