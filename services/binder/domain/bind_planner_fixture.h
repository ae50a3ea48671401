// What the tests of BindPlanner have in common: one job, `a`, and everything around its binder.
#pragma once

#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "services/binder/domain/planner_harness.h"

namespace fluxqueue::binder {

class BindPlannerTest : public ::testing::Test {
 protected:
  void Allocate(uint32_t slots, uint32_t attempt = 1) {
    h_.PlaceJob("a", attempt, slots);
    h_.log.push_back(Fact(events::v1::JOB_STATE_ALLOCATED, slots, attempt));
  }
  events::v1::JobFact Fact(events::v1::JobState state, uint32_t slots, uint32_t attempt = 1) {
    events::v1::JobFact fact = h_.Fact("a", state, slots, attempt);
    *fact.mutable_workload() = workload_.has_value() ? *workload_ : fact.workload();
    return fact;
  }
  void Stop(uint32_t slots, uint32_t attempt = 1) {
    h_.log.push_back(Fact(events::v1::JOB_STATE_STOPPING, slots, attempt));
  }
  events::v1::Workload& Workload(uint32_t slots) {
    if (!workload_.has_value())
      workload_ = h_.Fact("x", events::v1::JOB_STATE_PENDING, slots).workload();
    workload_->set_name("a");
    workload_->set_uid("a");
    return *workload_;
  }
  void BarePod() {
    Workload(1).set_kind("Pod");
    Workload(1).set_recreatable(false);
  }

  PlannerHarness h_;
  std::optional<events::v1::Workload> workload_;
};

}  // namespace fluxqueue::binder
