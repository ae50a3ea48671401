// What happened to a job and how long it took, from events alone: its history (queue.job_events)
// and the log of its pool. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/job_store/job_store.h"

namespace fluxqueue::cli {

struct Stage {
  std::string name;
  int64_t from_ms = 0;
  int64_t until_ms = 0;  // 0: it lasts
  std::string detail{};
  bool within = false;  // a part of the stage before it
};

class JobTrace {
 public:
  JobTrace(job_store::Job job, std::vector<job_store::JobEvent> history);

  // A record of the log of the job's pool, in its order.
  void Fold(const events::v1::Envelope& message, Millis appended);

  // In the order of their beginning, parts behind what they are parts of: a cycle, and pods in the
  // order in which they were done.
  std::vector<Stage> Stages() const;

 private:
  struct Cycle {
    uint64_t id = 0;
    int64_t from_ms = 0;
    int64_t until_ms = 0;
    std::string outcome;
  };
  struct PodSpan {
    std::string name;
    uint32_t attempt = 0;
    int64_t from_ms = 0;  // 0: as the stage
    int64_t until_ms = 0;
  };

  void AddCycle(const events::v1::CycleAnswered& answer, int64_t at_ms);
  void AddParts(const Stage& stage,
                const job_store::JobEvent& event,
                std::vector<Stage>* out) const;
  static void AddPods(const Stage& stage,
                      const job_store::JobEvent& event,
                      const std::vector<PodSpan>& pods,
                      std::vector<Stage>* out);

  const job_store::Job job_;
  const std::vector<job_store::JobEvent> history_;
  int64_t submitted_ms_ = 0;               // when it came into the log
  std::vector<Cycle> cycles_;              // that tried it
  std::map<uint64_t, int64_t> requested_;  // cycles that are not answered yet
  std::vector<PodSpan> bound_;
  std::vector<PodSpan> ended_;
};

// A waterfall: a line for each stage, its bar at its time. `now_ms`: until when what lasts is
// drawn.
std::string DrawWaterfall(const std::vector<Stage>& stages,
                          int64_t now_ms,
                          size_t width,
                          bool colour);

}  // namespace fluxqueue::cli
