#include "tools/fluxqueue/load/load_report.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/trace/capacity.h"
#include "libs/trace/statistics.h"

namespace fluxqueue::load {
namespace {

using nlohmann::json;

constexpr size_t kMostNames = 20;  // in a table; JSON has them all

double Seconds(int64_t ms) {
  return static_cast<double>(ms) / 1000;
}

std::string WhyNotEnded(const JobRecord& record) {
  if (!record.submitted_ms.has_value()) return "it was not submitted";
  std::string why = record.state.empty() ? "no FluxJob" : record.state;
  if (!record.reason.empty()) why += " (" + record.reason + ")";
  if (!record.message.empty()) why += ": " + record.message;
  if (!record.job_status.empty()) why += "; its Job: " + record.job_status;
  return why;
}

void CountEnding(const JobRecord& record, LoadReport* report) {
  const std::string& name = record.planned->job.name;
  if (record.ending != Ending::kNotYet) ++report->ended;
  switch (record.ending) {
    case Ending::kNotYet:
      report->not_ended.push_back({name, WhyNotEnded(record)});
      return;
    case Ending::kSucceeded:
      ++report->succeeded;
      return;
    case Ending::kFailed:
      ++report->failed;
      return;
    case Ending::kCancelled:
      ++report->cancelled;
      return;
    case Ending::kRejected:
      (record.planned->can_run ? report->wrongly_rejected : report->rejected)
          .push_back({name, record.message});
      return;
    case Ending::kRefused:
      report->refused.push_back({name, record.message});
      return;
  }
}

// The moments of a load, each kind together.
struct Moments {
  std::vector<double> waits{}, bounds{}, late{};
  std::vector<trace::Use> uses{};
  int64_t first_ms = std::numeric_limits<int64_t>::max();
  int64_t last_ms = std::numeric_limits<int64_t>::min();
};

Moments Collect(const std::vector<JobRecord>& records) {
  Moments moments;
  for (const JobRecord& record : records) {
    if (!record.submitted_ms.has_value()) continue;
    moments.first_ms = std::min(moments.first_ms, *record.submitted_ms);
  }
  for (const JobRecord& record : records) {
    if (!record.submitted_ms.has_value()) continue;
    const int64_t submitted = *record.submitted_ms;
    moments.late.push_back(Seconds(submitted - moments.first_ms - record.planned->submit.count()));
    if (record.bound_ms.has_value())
      moments.bounds.push_back(Seconds(*record.bound_ms - submitted));
    if (record.started_ms.has_value()) {
      moments.waits.push_back(Seconds(*record.started_ms - submitted));
    }
    if (record.ended_ms.has_value()) {
      moments.last_ms = std::max(moments.last_ms, *record.ended_ms);
    }
    if (record.ending == Ending::kSucceeded) {
      moments.uses.push_back({&record.planned->job, Seconds(record.planned->run.count())});
    }
  }
  return moments;
}

json Named(const std::vector<NamedReason>& jobs) {
  json list = json::array();
  for (const NamedReason& job : jobs) list.push_back({{"job", job.job}, {"reason", job.reason}});
  return list;
}

json OrNull(const std::optional<double>& value) {
  return value.has_value() ? json(*value) : json(nullptr);
}

std::string OrDash(const std::optional<double>& seconds) {
  return seconds.has_value() ? fmt::format("{:.3f} s", *seconds) : "-";
}

void AddRow(std::string* table, std::string_view name, std::string_view value) {
  fmt::format_to(std::back_inserter(*table), "{:<28}{}\n", name, value);
}

void AddNames(std::string* table, std::string_view heading, const std::vector<NamedReason>& jobs) {
  if (jobs.empty()) return;
  fmt::format_to(std::back_inserter(*table), "\n{}\n", heading);
  for (size_t i = 0; i < std::min(jobs.size(), kMostNames); ++i) {
    fmt::format_to(std::back_inserter(*table), "  {}: {}\n", jobs[i].job, jobs[i].reason);
  }
  if (jobs.size() > kMostNames) {
    fmt::format_to(std::back_inserter(*table),
                   "  and {} more (-o json has them all)\n",
                   jobs.size() - kMostNames);
  }
}

}  // namespace

LoadReport MakeReport(const Plan& plan, const std::vector<JobRecord>& records) {
  LoadReport report;
  report.jobs = records.size();
  report.nodes = plan.nodes.size();
  report.without_run_time = plan.without_run_time;
  report.without_processors = plan.without_processors;
  size_t jobs_ran = 0;
  size_t pods_ran = 0;
  for (const JobRecord& record : records) {
    const auto slots = static_cast<size_t>(record.planned->job.slots);
    report.pods += slots;
    if (record.started_ms.has_value() && record.ended_ms.has_value()) {
      ++jobs_ran;
      pods_ran += slots;
    }
    CountEnding(record, &report);
  }
  const Moments moments = Collect(records);
  report.wait_p50_s = trace::Percentile(moments.waits, 50);
  report.wait_p99_s = trace::Percentile(moments.waits, 99);
  report.bound_p50_s = trace::Percentile(moments.bounds, 50);
  report.bound_p99_s = trace::Percentile(moments.bounds, 99);
  report.submitted_late_p99_s = trace::Percentile(moments.late, 99);
  if (moments.last_ms <= moments.first_ms) return report;
  report.span_s = Seconds(moments.last_ms - moments.first_ms);
  report.jobs_per_s = static_cast<double>(jobs_ran) / report.span_s;
  report.pods_per_s = static_cast<double>(pods_ran) / report.span_s;
  for (const auto& [resource, total] : trace::TotalOffer(plan.nodes)) {
    const std::optional<double> used =
        trace::Utilisation(moments.uses, resource, total, report.span_s);
    if (used.has_value()) report.utilisation.emplace_back(resource, *used);
  }
  return report;
}

std::string FormatTable(const LoadReport& report) {
  std::string table;
  AddRow(&table,
         "jobs",
         fmt::format("{} ({} pods, {} nodes)", report.jobs, report.pods, report.nodes));
  if (report.without_run_time + report.without_processors != 0) {
    AddRow(&table,
           "left out of the trace",
           fmt::format("{} without a run time, {} without processors",
                       report.without_run_time,
                       report.without_processors));
  }
  AddRow(&table, "ended", fmt::format("{}", report.ended));
  AddRow(&table, "  succeeded", fmt::format("{}", report.succeeded));
  AddRow(&table, "  failed", fmt::format("{}", report.failed));
  AddRow(&table, "  cancelled", fmt::format("{}", report.cancelled));
  AddRow(&table,
         "  rejected",
         fmt::format("{}", report.rejected.size() + report.wrongly_rejected.size()));
  AddRow(&table, "span", fmt::format("{:.1f} s", report.span_s));
  AddRow(&table,
         "rate",
         fmt::format("{:.1f} jobs/s, {:.1f} pods/s", report.jobs_per_s, report.pods_per_s));
  AddRow(&table, "wait p50", OrDash(report.wait_p50_s));
  AddRow(&table, "wait p99", OrDash(report.wait_p99_s));
  AddRow(&table, "bound after p50", OrDash(report.bound_p50_s));
  AddRow(&table, "bound after p99", OrDash(report.bound_p99_s));
  AddRow(&table, "submitted late p99", OrDash(report.submitted_late_p99_s));
  if (!report.utilisation.empty()) table += "utilisation\n";
  for (const auto& [resource, share] : report.utilisation) {
    AddRow(&table, "  " + resource, fmt::format("{:.1f} %", share * 100));
  }
  AddNames(&table, "Rejected, and rightly so: these nodes could never run them", report.rejected);
  AddNames(&table, "Rejected although these nodes could run them", report.wrongly_rejected);
  AddNames(&table, "Refused by the API server", report.refused);
  AddNames(&table, "Not ended", report.not_ended);
  return table;
}

std::string FormatJson(const LoadReport& report) {
  json utilisation = json::object();
  for (const auto& [resource, share] : report.utilisation) utilisation[resource] = share;
  const json object = {
      {"jobs", report.jobs},
      {"pods", report.pods},
      {"nodes", report.nodes},
      {"leftOut",
       {{"withoutRunTime", report.without_run_time},
        {"withoutProcessors", report.without_processors}}},
      {"ended", report.ended},
      {"succeeded", report.succeeded},
      {"failed", report.failed},
      {"cancelled", report.cancelled},
      {"rejected", Named(report.rejected)},
      {"wronglyRejected", Named(report.wrongly_rejected)},
      {"refused", Named(report.refused)},
      {"notEnded", Named(report.not_ended)},
      {"spanSeconds", report.span_s},
      {"jobsPerSecond", report.jobs_per_s},
      {"podsPerSecond", report.pods_per_s},
      {"waitSeconds", {{"p50", OrNull(report.wait_p50_s)}, {"p99", OrNull(report.wait_p99_s)}}},
      {"boundSeconds", {{"p50", OrNull(report.bound_p50_s)}, {"p99", OrNull(report.bound_p99_s)}}},
      {"submittedLateSecondsP99", OrNull(report.submitted_late_p99_s)},
      {"utilisation", utilisation},
      {"good", report.Good()}};
  return object.dump(2) + "\n";
}

}  // namespace fluxqueue::load
