#include "tools/fluxqueue/cycle_stats.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {

using events::v1::Candidate;
using events::v1::Envelope;
using events::v1::Outcome;
using nlohmann::json;

void CycleStats::Take(const verify::EventLine& line) {
  if (first_.count() == 0) first_ = line.time;
  last_ = line.time;
  switch (line.message.event_case()) {
    case Envelope::kJobSubmitted:
      ++submitted_;
      return;
    case Envelope::kJobEnded:
      ++ended_;
      return;
    case Envelope::kCycleRequested: {
      const bool again =
          asked_at_.count() != 0 && asked_.cycle_id() == line.message.cycle_requested().cycle_id();
      if (again) {
        ++asked_again_;
        return;
      }
      asked_ = line.message.cycle_requested();
      asked_at_ = line.time;
      return;
    }
    case Envelope::kCycleAnswered:
      TakeAnswer(line.message.cycle_answered(), line.time);
      return;
    default:
      return;
  }
}

void CycleStats::TakeAnswer(const events::v1::CycleAnswered& answer, Millis now) {
  if (asked_at_.count() == 0 || answer.cycle_id() != asked_.cycle_id()) return;
  times_ms_.push_back((now - asked_at_).count());
  depths_.push_back(asked_.candidates_size());
  asked_at_ = Millis(0);
  std::map<std::string, const Outcome*> outcomes;
  for (const Outcome& outcome : answer.outcomes()) outcomes.emplace(outcome.job_id(), &outcome);
  std::map<std::string, bool> blocked;  // by queue: one of it could not start
  for (const Candidate& candidate : asked_.candidates()) {
    if (candidate.grow()) continue;
    const auto rule = static_cast<int>(candidate.rule());
    const std::string& queue = rule < asked_.rules_size() ? asked_.rules(rule).queue() : "";
    OfQueue& of = queues_[queue];
    ++of.candidates;
    const auto found = outcomes.find(candidate.job_id());
    if (found == outcomes.end()) continue;
    ++of.tried;
    const Outcome& outcome = *found->second;
    if (outcome.kind() == Outcome::KIND_ALLOCATED) {
      ++of.started;
      if (blocked[queue]) ++of.backfilled;
      continue;
    }
    blocked[queue] = true;
    of.stops += static_cast<uint64_t>(outcome.victims_size());
    if (outcome.kind() == Outcome::KIND_RESERVED) ++of.reserved;
    if (outcome.kind() == Outcome::KIND_BUSY) ++of.busy;
    if (outcome.kind() == Outcome::KIND_UNSATISFIABLE) ++of.unsatisfiable;
  }
}

CycleStats::Summary CycleStats::SummaryOf(std::vector<int64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&values](size_t percent) {
    return values[std::min(values.size() - 1, values.size() * percent / 100)];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.mean = sum / static_cast<double>(values.size()),
          .median = at(50),
          .p95 = at(95),
          .most = values.back()};
}

CycleStats::OfQueue CycleStats::Sum() const {
  OfQueue sum;
  for (const auto& [name, of] : queues_) {
    sum.candidates += of.candidates;
    sum.tried += of.tried;
    sum.started += of.started;
    sum.backfilled += of.backfilled;
    sum.reserved += of.reserved;
    sum.busy += of.busy;
    sum.unsatisfiable += of.unsatisfiable;
    sum.stops += of.stops;
  }
  return sum;
}

double CycleStats::CyclesAMinute() const {
  const double minutes = static_cast<double>((last_ - first_).count()) / 60'000;
  return minutes > 0 ? static_cast<double>(times_ms_.size()) / minutes : 0;
}

std::string CycleStats::Text(const std::string& pool, bool colour) const {
  const Summary times = SummaryOf(times_ms_);
  const Summary depths = SummaryOf(depths_);
  std::string text = fmt::format(
      "pool {}, {} to {}\n"
      "  cycles  {} ({:.1f} a minute), asked again: {}\n"
      "  took    mean {:.1f} ms, median {}, p95 {}, most {}, last {}\n"
      "  depth   mean {:.1f} candidates, median {}, p95 {}, most {}, last {}\n"
      "  jobs    {} submitted, {} ended\n",
      pool,
      FormatTime(first_),
      FormatTime(last_),
      Thousands(times_ms_.size()),
      CyclesAMinute(),
      asked_again_,
      times.mean,
      times.median,
      times.p95,
      times.most,
      times_ms_.empty() ? 0 : times_ms_.back(),
      depths.mean,
      depths.median,
      depths.p95,
      depths.most,
      depths_.empty() ? 0 : depths_.back(),
      Thousands(submitted_),
      Thousands(ended_));
  if (queues_.empty()) return text;
  Table table({"QUEUE",
               "CANDIDATES",
               "TRIED",
               "STARTED",
               "BACKFILLED",
               "RESERVED",
               "BUSY",
               "UNSATISFIABLE",
               "STOPS"});
  const auto add = [&table](const std::string& name, const OfQueue& of, Colour look) {
    std::vector<Cell> row = {{name, look}};
    for (const uint64_t count : {of.candidates,
                                 of.tried,
                                 of.started,
                                 of.backfilled,
                                 of.reserved,
                                 of.busy,
                                 of.unsatisfiable,
                                 of.stops}) {
      row.emplace_back(Thousands(count), look);
    }
    table.Add(std::move(row));
  };
  for (const auto& [name, of] : queues_) add(name.empty() ? "-" : name, of, Colour::kNone);
  if (queues_.size() > 1) add("all", Sum(), Colour::kBold);
  return text + table.Render(colour);
}

json CycleStats::Json() const {
  const auto summary = [](const std::vector<int64_t>& values) -> json {
    const Summary of = SummaryOf(values);
    return {{"mean", of.mean},
            {"median", of.median},
            {"p95", of.p95},
            {"most", of.most},
            {"last", values.empty() ? 0 : values.back()}};
  };
  json queues = json::object();
  for (const auto& [name, of] : queues_) {
    queues[name] = {{"candidates", of.candidates},
                    {"tried", of.tried},
                    {"started", of.started},
                    {"backfilled", of.backfilled},
                    {"reserved", of.reserved},
                    {"busy", of.busy},
                    {"unsatisfiable", of.unsatisfiable},
                    {"stops", of.stops}};
  }
  return {{"since", FormatTime(first_)},
          {"until", FormatTime(last_)},
          {"cycles", times_ms_.size()},
          {"askedAgain", asked_again_},
          {"tookMs", summary(times_ms_)},
          {"depth", summary(depths_)},
          {"submitted", submitted_},
          {"ended", ended_},
          {"queues", std::move(queues)}};
}

}  // namespace fluxqueue::cli
