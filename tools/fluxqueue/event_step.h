// One event of a pool's log as it is replayed: what it says, and what queue and matcher decide by
// it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/verify/event_line.h"

#include "tools/fluxqueue/job_story.h"

namespace fluxqueue::cli {

class EventStep {
 public:
  // The next record of the log, before it is folded.
  void Begin(const verify::EventLine& line);
  // What then comes of it: what a job is told, with its nodes if it is given some now, and what is
  // said to the log.
  void Decide(const events::v1::JobFact& fact, Millis now, std::string nodes);
  void Say(const events::v1::Envelope& message);

  int64_t time_ms() const { return time_ms_; }
  // Whether the event or what comes of it has `text` in it, as it is shown.
  bool Names(std::string_view text) const;

  // Lines of at most `width` characters. Of the day of `since_ms` the time alone.
  std::string Format(int64_t since_ms, size_t width, bool colour) const;
  nlohmann::json ToJson() const;

 private:
  struct Told {
    std::string job;
    StoryStep step;
  };
  struct Said {
    std::string type;
    std::string text;
  };

  int64_t time_ms_ = 0;
  int64_t offset_ = 0;
  std::string speaker_;  // "queue"
  Said said_;            // the event
  std::vector<Told> told_;
  std::vector<Said> decisions_;
};

}  // namespace fluxqueue::cli
