// What `top` draws. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "libs/job_store/job_store.h"

#include "tools/fluxqueue/cluster_view.h"
#include "tools/fluxqueue/pipeline_view.h"
#include "tools/fluxqueue/terminal.h"

namespace fluxqueue::cli {

// Jobs that started and ended, second by second. Facts may come out of order and late.
class Throughput {
 public:
  static constexpr size_t kSeconds = 60;

  // A job has come into the state at the time.
  void Add(std::string_view state, int64_t time_ms);
  // Forgets what is older than kSeconds.
  void MoveTo(int64_t now_ms);

  // Jobs a second over the last ten whole seconds.
  double StartedRate() const { return Rate(started_); }
  double EndedRate() const { return Rate(ended_); }
  // Ended, a character for each second.
  std::string Sparkline() const;

 private:
  using Counts = std::deque<uint32_t>;  // the last one is the second under way
  static double Rate(const Counts& counts);

  int64_t second_ = 0;
  Counts started_ = Counts(kSeconds, 0);
  Counts ended_ = Counts(kSeconds, 0);
};

struct TopView {
  int64_t now_ms = 0;
  std::map<std::string, int64_t> states;  // live jobs, all of them
  std::vector<job_store::Job> jobs;       // to be listed: of those that live, JobStore::Front
  std::vector<NodeView> nodes;
  PipelineView pipeline;
  std::string trouble;  // why what is shown is old; empty: it is not
};

struct TopState {
  size_t first = 0;  // of the jobs, that is shown
  bool paused = false;
};

// Moves state->first into the list, if it is not.
std::string DrawTop(
    const TopView& view, const Throughput& throughput, Size size, bool colour, TopState* state);

}  // namespace fluxqueue::cli
