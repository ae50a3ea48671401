#include "tools/fluxqueue/job_trace.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using events::v1::Envelope;
using events::v1::Outcome;
using job_store::JobEvent;

constexpr size_t kPodsShown = 16;
constexpr size_t kLeastBar = 10;

// What a job does while it is in the state.
std::string StageName(std::string_view state) {
  if (state == "Submitted" || state == "Pending") return "in line";
  if (state == "Allocated") return "binding";
  if (state == "Bound") return "starting";
  if (state == "Running") return "running";
  if (state == "Stopping") return "stopping";
  return "";  // it is over
}

std::string OutcomeText(const Outcome& outcome) {
  switch (outcome.kind()) {
    case Outcome::KIND_ALLOCATED:
      return "allocated";
    case Outcome::KIND_RESERVED:
      return "reserved";
    case Outcome::KIND_BUSY:
      return "busy";
    case Outcome::KIND_UNSATISFIABLE:
      return "unsatisfiable";
    default:
      return "invalid";
  }
}

// One bar for several.
Stage Together(std::span<const Stage> parts) {
  std::vector<int64_t> took;
  Stage all{fmt::format("{} more pods", parts.size()), INT64_MAX, 0, "", true};
  for (const Stage& part : parts) {
    took.push_back(part.until_ms - part.from_ms);
    all.from_ms = std::min(all.from_ms, part.from_ms);
    all.until_ms = std::max(all.until_ms, part.until_ms);
  }
  std::sort(took.begin(), took.end());
  all.detail = fmt::format("{} to {}, median {}",
                           ShortDuration(Millis(took.front())),
                           ShortDuration(Millis(took.back())),
                           ShortDuration(Millis(took[took.size() / 2])));
  return all;
}

std::string Padded(std::string_view text, size_t width) {
  return fmt::format("{:<{}}", text, width);
}

bool IsMoment(const Stage& stage) {
  return stage.until_ms == stage.from_ms;
}

Colour LookOf(const Stage& stage) {
  if (IsMoment(stage)) return StateColour(stage.name);
  if (stage.within) return Colour::kCyan;
  if (stage.name == "in line") return Colour::kYellow;
  return stage.name == "running" ? Colour::kGreen : Colour::kBlue;
}

std::string BarOf(const Stage& stage, size_t length) {
  std::string bar;
  for (size_t i = 0; i < length; ++i) {
    bar += IsMoment(stage) ? "◆" : stage.within ? "▬" : "█";
  }
  return bar;
}

std::string Took(const Stage& stage, int64_t until_ms) {
  if (IsMoment(stage)) return "";
  return ShortDuration(Millis(until_ms - stage.from_ms)) + (stage.until_ms == 0 ? "…" : "");
}

}  // namespace

JobTrace::JobTrace(job_store::Job job, std::vector<JobEvent> history)
    : job_(std::move(job)), history_(std::move(history)) {}

void JobTrace::Fold(const Envelope& message, Millis appended) {
  const int64_t at = appended.count();
  switch (message.event_case()) {
    case Envelope::kJobSubmitted:
      if (message.job_submitted().job_id() == job_.id && submitted_ms_ == 0) submitted_ms_ = at;
      break;
    case Envelope::kCycleRequested:
      for (const auto& candidate : message.cycle_requested().candidates()) {
        if (candidate.job_id() == job_.id) requested_[message.cycle_requested().cycle_id()] = at;
      }
      break;
    case Envelope::kCycleAnswered:
      AddCycle(message.cycle_answered(), at);
      break;
    case Envelope::kPodEnded: {
      const events::v1::PodEnded& ended = message.pod_ended();
      if (ended.job_id() != job_.id) break;
      ended_.push_back(
          {fmt::format("pod {} on {}", ended.slot(), ended.node()), ended.attempt(), 0, at});
      break;
    }
    case Envelope::kJobBound: {
      const events::v1::JobBound& bound = message.job_bound();
      if (bound.job_id() != job_.id) break;
      for (const events::v1::JobBound::Pod& pod : bound.pods()) {
        bound_.push_back({fmt::format("pod {}", pod.slot()),
                          bound.attempt(),
                          at - pod.taken_ago(),
                          at - pod.bound_ago()});
      }
      break;
    }
    default:
      break;
  }
}

void JobTrace::AddCycle(const events::v1::CycleAnswered& answer, int64_t at_ms) {
  const auto asked = requested_.find(answer.cycle_id());
  if (asked == requested_.end()) return;
  Cycle cycle{asked->first, asked->second, at_ms, "not reached"};
  for (const Outcome& outcome : answer.outcomes()) {
    if (outcome.job_id() == job_.id) cycle.outcome = OutcomeText(outcome);
  }
  cycles_.push_back(std::move(cycle));
  requested_.erase(asked);
}

void JobTrace::AddParts(const Stage& stage, const JobEvent& event, std::vector<Stage>* out) const {
  const int64_t until = stage.until_ms == 0 ? INT64_MAX : stage.until_ms;
  if (stage.name == "in line") {
    // The last one decides; those before it are counted.
    size_t tried = 0;
    const Cycle* last = nullptr;
    for (const Cycle& cycle : cycles_) {
      if (cycle.from_ms < stage.from_ms || cycle.from_ms > until) continue;
      ++tried;
      last = &cycle;
    }
    if (last == nullptr) return;
    std::string detail = last->outcome;
    if (tried > 1) detail += fmt::format(", try {}", tried);
    out->push_back(
        {fmt::format("cycle {}", last->id), last->from_ms, last->until_ms, detail, true});
  }
  if (stage.name == "binding") AddPods(stage, event, bound_, out);
  if (stage.name == "running") AddPods(stage, event, ended_, out);
}

// Those that were the last to be done; the others are one bar.
void JobTrace::AddPods(const Stage& stage,
                       const JobEvent& event,
                       const std::vector<PodSpan>& pods,
                       std::vector<Stage>* out) {
  std::vector<Stage> parts;
  for (const PodSpan& pod : pods) {
    if (static_cast<int64_t>(pod.attempt) != event.attempt || pod.until_ms < stage.from_ms)
      continue;
    parts.push_back({pod.name, std::max(pod.from_ms, stage.from_ms), pod.until_ms, "", true});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Stage& a, const Stage& b) {
    return a.until_ms < b.until_ms;
  });
  const size_t others = parts.size() - std::min(parts.size(), kPodsShown);
  if (others > 0) out->push_back(Together({parts.data(), others}));
  out->insert(out->end(), parts.begin() + static_cast<ptrdiff_t>(others), parts.end());
}

std::vector<Stage> JobTrace::Stages() const {
  std::vector<Stage> stages;
  const int64_t first = submitted_ms_ != 0  ? submitted_ms_
                        : !history_.empty() ? history_.front().time_ms
                                            : job_.created_ms;
  // The object's time is in whole seconds: it may lie a moment before it was made.
  if (first > job_.created_ms) stages.push_back({"admission", job_.created_ms, first, "", false});
  for (size_t i = 0; i < history_.size();) {
    const JobEvent& event = history_[i];
    const std::string name = StageName(event.state);
    size_t end = i + 1;
    while (end < history_.size() && history_[end].attempt == event.attempt &&
           StageName(history_[end].state) == name) {
      ++end;
    }
    if (name.empty()) {
      stages.push_back({event.state, event.time_ms, event.time_ms, event.reason, false});
    } else {
      const Stage stage{name,
                        i == 0 ? first : event.time_ms,
                        end < history_.size() ? history_[end].time_ms : 0,
                        history_[end - 1].reason,
                        false};
      stages.push_back(stage);
      AddParts(stage, event, &stages);
    }
    i = end;
  }
  return stages;
}

std::string DrawWaterfall(const std::vector<Stage>& stages,
                          int64_t now_ms,
                          size_t width,
                          bool colour) {
  if (stages.empty()) return "";
  int64_t begin = INT64_MAX;
  int64_t end = 0;
  size_t names = 0;
  size_t details = 0;
  const auto until = [now_ms](const Stage& stage) {
    return std::max(stage.from_ms, stage.until_ms == 0 ? now_ms : stage.until_ms);
  };
  for (const Stage& stage : stages) {
    begin = std::min(begin, stage.from_ms);
    end = std::max(end, until(stage));
    names = std::max(names, stage.name.size() + (stage.within ? 2 : 0));
    details = std::max(details, stage.detail.size());
  }
  const size_t fixed = names + details + 26;
  const size_t bar = std::max(kLeastBar, width > fixed ? width - fixed : 0);
  const double scale =
      static_cast<double>(bar) / static_cast<double>(std::max<int64_t>(1, end - begin));
  const auto column = [&](int64_t at) {
    return std::min(bar - 1, static_cast<size_t>(static_cast<double>(at - begin) * scale));
  };
  std::string text = fmt::format("{} {:>10} {:>10}  {:<{}}  {}\n",
                                 Padded("STAGE", names),
                                 "AT",
                                 "TOOK",
                                 "0",
                                 bar,
                                 ShortDuration(Millis(end - begin)));
  for (const Stage& stage : stages) {
    const size_t from = column(stage.from_ms);
    const size_t length = std::max<size_t>(1, column(until(stage)) - from);
    std::string line = fmt::format("{} {:>10} {:>10}  {}{}{}  {}",
                                   Padded((stage.within ? "  " : "") + stage.name, names),
                                   "+" + ShortDuration(Millis(stage.from_ms - begin)),
                                   Took(stage, until(stage)),
                                   std::string(from, ' '),
                                   Paint(BarOf(stage, length), LookOf(stage), colour),
                                   std::string(bar - std::min(bar, from + length), ' '),
                                   stage.detail);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace fluxqueue::cli
