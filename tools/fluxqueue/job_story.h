// The story of one job with its causes, from its pool's log as it is replayed: what was said of it,
// what became of it by that, and what it was told meanwhile. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/verify/event_line.h"

namespace fluxqueue::cli {

// A record of the log.
struct StoryCause {
  int64_t offset = 0;
  std::string type{};  // "cycle_answered"
  std::string text{};
  bool of_others = false;  // it says nothing of the job
};

struct StoryStep {
  int64_t time_ms = 0;
  StoryCause cause{};
  // How often the log says just this of the job, one right after the other, and when last.
  size_t times = 1;
  int64_t last_ms = 0;
  // What became of the job by it; version 0: nothing did.
  uint64_t version = 0;
  uint32_t attempt = 0;
  std::string state{};
  std::string reason{};
  std::string message{};
  int64_t start_ms = 0;  // promised, or real; 0: none is known
  bool firm = false;     // that promise
  std::string moved{};   // why a promise is later, or withdrawn: "node n1"
  std::string nodes{};   // that it was given: "n1 x2, n2"
};

// What a job was told by a fact; without its cause, and where it runs.
StoryStep StepOf(const events::v1::JobFact& fact, Millis now);
nlohmann::json ToJson(const StoryStep& step);
// "Pending (Busy)", and what else it was told.
std::string StateText(const StoryStep& step);
std::string DetailText(const StoryStep& step, int64_t now_ms);
// "14:03:22.123", as ShortTime has it.
std::string ExactTime(int64_t time_ms, int64_t now_ms);

class JobStory {
 public:
  // Where an attempt of the job is; empty: nowhere.
  using NodesOf = std::function<std::string(const std::string& job_id, uint32_t attempt)>;

  // `wanted`: its id, namespace/name or, of a claim, its name. Of several of one name it is the
  // last that was submitted.
  JobStory(std::string wanted, NodesOf nodes)
      : wanted_(std::move(wanted)), nodes_(std::move(nodes)) {}

  // A record of the log, before it is folded, and each fact that then comes of it.
  void Read(const verify::EventLine& line);
  void Decide(const events::v1::JobFact& fact, Millis now);

  const std::string& id() const { return id_; }  // empty: the log has no such job
  const std::string& name() const { return name_; }
  const std::vector<StoryStep>& steps() const { return steps_; }

 private:
  void Meet(const events::v1::Envelope& message);
  void Tell(StoryCause cause, int64_t time_ms);

  const std::string wanted_;
  const NodesOf nodes_;
  std::string id_;
  std::string name_;
  verify::EventLine read_;  // the last one
  bool told_ = false;       // that is the last step
  std::vector<StoryStep> steps_;
};

nlohmann::json ToJson(const JobStory& story);
// Of the day of its last step the times alone.
std::string FormatStory(const JobStory& story, int64_t now_ms, bool colour);

}  // namespace fluxqueue::cli
