#include "tools/fluxqueue/load/load_tracker.h"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::load {
namespace {

using nlohmann::json;

// "2026-01-31T12:00:00.123Z", as the queue writes it.
std::optional<int64_t> ParseTime(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, millis = 0;
  const int read = std::sscanf(text.c_str(),
                               "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ",
                               &year,
                               &month,
                               &day,
                               &hour,
                               &minute,
                               &second,
                               &millis);
  if (read < 6) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  const auto time = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
                    std::chrono::minutes(minute) + std::chrono::seconds(second) + Millis(millis);
  return std::chrono::duration_cast<Millis>(time).count();
}

std::string TextAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const json& MemberAt(const json& object, const char* key) {
  static const json kNothing = json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_structured() ? *found : kNothing;
}

Ending EndingOf(std::string_view state) {
  if (state == "Succeeded") return Ending::kSucceeded;
  if (state == "Failed") return Ending::kFailed;
  if (state == "Cancelled") return Ending::kCancelled;
  if (state == "Rejected") return Ending::kRejected;
  return Ending::kNotYet;
}

}  // namespace

LoadTracker::LoadTracker(const Plan& plan, bool managed) : managed_(managed) {
  records_.resize(plan.jobs.size());
  for (size_t i = 0; i < plan.jobs.size(); ++i) {
    records_[i].planned = &plan.jobs[i];
    by_name_.emplace(plan.jobs[i].job.name, i);
  }
}

void LoadTracker::Submitted(size_t index, int64_t now_ms) {
  records_[index].submitted_ms = now_ms;
  ++counts_.submitted;
}

void LoadTracker::Refused(size_t index, std::string_view message, int64_t now_ms) {
  JobRecord& record = records_[index];
  record.message = message;
  record.ended_ms = now_ms;
  End(&record, Ending::kRefused);
}

absl::Status LoadTracker::SawJob(std::string_view text, int64_t now_ms) {
  ASSIGN_OR_RETURN(const kubernetes::Job job, kubernetes::ParseJob(text));
  JobRecord* record = Find(job.meta.name);
  if (record == nullptr || record->ending != Ending::kNotYet) return absl::OkStatus();
  record->job_status = fmt::format("{} active, {} ready, {} succeeded, {} failed{}",
                                   job.active,
                                   job.ready,
                                   job.succeeded,
                                   job.failed,
                                   job.suspended ? ", suspended" : "");
  record->job_complete = job.complete;
  record->job_failed = job.has_failed;
  if (!managed_) {
    record->reason = job.reason;
    record->message = job.message;
    if (job.ready > 0 || job.succeeded > 0 || job.failed > 0) Start(record, now_ms);
  }
  if (job.Ended() && !record->ended_ms.has_value()) record->ended_ms = now_ms;
  Settle(record);
  return absl::OkStatus();
}

absl::Status LoadTracker::SawFluxJob(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return InvalidArgument("a FluxJob is not a JSON object");
  const json& workload = MemberAt(MemberAt(object, "spec"), "workload");
  JobRecord* record = TextAt(workload, "kind") == "Job" ? Find(TextAt(workload, "name")) : nullptr;
  if (record == nullptr || record->ending != Ending::kNotYet) return absl::OkStatus();
  const json& status = MemberAt(object, "status");
  record->state = TextAt(status, "state");
  record->reason = TextAt(status, "reason");
  record->message = TextAt(status, "message");
  for (const json& transition : MemberAt(status, "transitions")) {
    const std::string state = TextAt(transition, "state");
    const std::optional<int64_t> time = ParseTime(TextAt(transition, "time"));
    if (!time.has_value()) continue;
    // A job may come by a state more than once; what it waited for is the first.
    if (state == "Allocated" && !record->allocated_ms.has_value()) record->allocated_ms = time;
    if (state == "Bound" && !record->bound_ms.has_value()) record->bound_ms = time;
    if (state == "Running") Start(record, *time);
    if (EndingOf(state) != Ending::kNotYet && !record->ended_ms.has_value()) {
      record->ended_ms = time;
    }
  }
  Settle(record);
  return absl::OkStatus();
}

void LoadTracker::SawJobGone(std::string_view name, int64_t now_ms) {
  JobRecord* record = Find(name);
  if (record == nullptr || record->ending != Ending::kNotYet) return;
  record->message = "the Job was deleted";
  if (!record->ended_ms.has_value()) record->ended_ms = now_ms;
  End(record, Ending::kCancelled);
}

JobRecord* LoadTracker::Find(std::string_view name) {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &records_[found->second];
}

void LoadTracker::Start(JobRecord* record, int64_t time_ms) {
  if (record->started_ms.has_value()) return;
  record->started_ms = time_ms;
  ++counts_.running;
}

void LoadTracker::Settle(JobRecord* record) {
  Ending ending = EndingOf(record->state);
  // It would wait for other nodes, and none are to come.
  const bool can_run_nowhere = record->state == "Pending" && record->reason == "Unsatisfiable";
  if (can_run_nowhere) ending = Ending::kRejected;
  const bool job_ended = record->job_complete || record->job_failed;
  if (!managed_) {
    ending = record->job_complete ? Ending::kSucceeded
             : record->job_failed ? Ending::kFailed
                                  : Ending::kNotYet;
  } else if (ending == Ending::kSucceeded && !job_ended) {
    ending = Ending::kNotYet;
  }
  if (ending != Ending::kNotYet) End(record, ending);
}

void LoadTracker::End(JobRecord* record, Ending ending) {
  record->ending = ending;
  if (record->started_ms.has_value()) --counts_.running;
  ++counts_.ended;
  if (ending == Ending::kRejected) ++counts_.rejected;
}

}  // namespace fluxqueue::load
