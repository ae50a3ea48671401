#include "tools/fluxqueue/event_step.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/fluxqueue/log_events.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/terminal.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

std::string NameOf(const events::v1::JobFact& fact) {
  if (fact.workload().name().empty()) return fact.job_id();
  return fact.workload().namespace_() + "/" + fact.workload().name();
}

// To the millisecond, behind the day if it is another than that of `since_ms`.
std::string TimeText(int64_t time_ms, int64_t since_ms) {
  const std::string day = ShortTime(time_ms, since_ms);
  return day.substr(0, day.rfind(' ') + 1) + ExactTime(time_ms, time_ms);
}

}  // namespace

void EventStep::Begin(const verify::EventLine& line) {
  const std::string& stream = line.message.stream();
  time_ms_ = line.time.count();
  offset_ = line.offset;
  speaker_ = stream.substr(0, stream.find('/'));
  said_ = {TypeOf(line.message), EventText(line.message)};
  told_.clear();
  decisions_.clear();
}

void EventStep::Decide(const events::v1::JobFact& fact, Millis now, std::string nodes) {
  told_.push_back({NameOf(fact), StepOf(fact, now)});
  told_.back().step.nodes = std::move(nodes);
}

void EventStep::Say(const events::v1::Envelope& message) {
  decisions_.push_back({TypeOf(message), EventText(message)});
}

bool EventStep::Names(std::string_view text) const {
  return Format(time_ms_, std::string::npos, false).find(text) != std::string::npos;
}

std::string EventStep::Format(int64_t since_ms, size_t width, bool colour) const {
  std::string out;
  const auto line = [&](const std::string& text) { out += Clip(text, width) + "\n"; };
  line(fmt::format("{}  {:>6}  {:<9}  {}  {}",
                   TimeText(time_ms_, since_ms),
                   offset_,
                   speaker_,
                   Paint(said_.type, Colour::kBold, colour),
                   said_.text));
  for (const Told& told : told_) {
    const std::string detail = DetailText(told.step, time_ms_);
    line(fmt::format("    {}  {}{}{}",
                     told.job,
                     Paint(StateText(told.step), StateColour(told.step.state), colour),
                     detail.empty() ? "" : "  ",
                     detail));
  }
  for (const Said& said : decisions_) {
    line(fmt::format("    {}  {}", Paint(said.type, Colour::kDim, colour), said.text));
  }
  return out;
}

json EventStep::ToJson() const {
  json jobs = json::array();
  for (const Told& told : told_) {
    json job = cli::ToJson(told.step);
    job["job"] = told.job;
    jobs.push_back(std::move(job));
  }
  json decisions = json::array();
  for (const Said& said : decisions_) {
    decisions.push_back({{"type", said.type}, {"text", said.text}});
  }
  return {{"timeMs", time_ms_},
          {"offset", offset_},
          {"from", speaker_},
          {"type", said_.type},
          {"text", said_.text},
          {"jobs", std::move(jobs)},
          {"decisions", std::move(decisions)}};
}

}  // namespace fluxqueue::cli
