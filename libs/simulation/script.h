// What comes to a simulated pool from outside of its cores, and how long its jobs run. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/simulation/machine.h"
#include "libs/simulation/setting.h"
#include "libs/simulation/submission.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::simulation {

// Messages in the order of their time. Made one by one, as a million of them would not fit.
class Script {
 public:
  virtual ~Script() = default;

  // When the next message comes; unset: there is none.
  virtual std::optional<Millis> NextTime() const = 0;
  // REQUIRES: there is one.
  virtual events::v1::Envelope Take() = 0;
  // How long job `job` of the workload runs once it has started; unset: it does not end.
  virtual std::optional<Millis> RunTimeOf(size_t job) const = 0;
  // It ends badly.
  virtual bool Fails(size_t job) const {
    (void)job;
    return false;
  }
};

// When the pool begins, and when the first job of a trace comes.
inline constexpr Millis kBeginning{1'000};
inline constexpr Millis kFirstSubmit{2'000};

// The jobs of a trace, on a machine that is there from the beginning.
class TraceScript final : public Script {
 public:
  // `workload` and `machine` must outlive it.
  TraceScript(const Workload& workload, const Machine& machine, const Setting& setting);

  std::optional<Millis> NextTime() const override;
  events::v1::Envelope Take() override;
  std::optional<Millis> RunTimeOf(size_t job) const override;
  bool Fails(size_t job) const override { return workload_.jobs[job].failed; }

  // Jobs of which it was to be said what their user asked for, and the trace does not know.
  size_t unknown_estimates() const { return unknown_estimates_; }

 private:
  const Workload& workload_;
  const Setting setting_;
  Submissions submissions_;
  std::deque<events::v1::Envelope> beginning_;
  size_t next_ = 0;
  size_t unknown_estimates_ = 0;
};

}  // namespace fluxqueue::simulation
