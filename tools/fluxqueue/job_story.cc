#include "tools/fluxqueue/job_story.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/model/job_of.h"
#include "libs/model/job_state.h"

#include "tools/fluxqueue/log_events.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using events::v1::Envelope;
using nlohmann::json;

// "BUSY" of KIND_BUSY, in small letters.
std::string Word(std::string name) {
  name.erase(0, name.find('_') + 1);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return name;
}

std::string FullName(const events::v1::Workload& workload) {
  return workload.namespace_() + "/" + workload.name();
}

// What the answer says of the job; unset: it was not tried.
std::optional<std::string> OutcomeText(const events::v1::CycleAnswered& answer,
                                       const std::string& id) {
  for (const events::v1::Outcome& outcome : answer.outcomes()) {
    if (outcome.job_id() != id) continue;
    return fmt::format("{}{}{}",
                       Word(events::v1::Outcome::Kind_Name(outcome.kind())),
                       outcome.reason().empty() ? "" : ": ",
                       outcome.reason());
  }
  return std::nullopt;
}

// What the record says of the job; unset: nothing that is worth a step.
std::optional<std::string> TextFor(const Envelope& message, const std::string& id) {
  // Who is tried stands in the answer, and what follows from facts in the log itself.
  if (message.has_cycle_requested() || message.has_job_fact()) return std::nullopt;
  if (message.has_cycle_answered()) return OutcomeText(message.cycle_answered(), id);
  if (!IsAbout(message, id)) return std::nullopt;
  std::string text = EventText(message);
  const std::string name = fmt::format("job_id: \"{}\" ", id);
  for (size_t at = text.find(name); at != text.npos; at = text.find(name))
    text.erase(at, name.size());
  return text;
}

std::string Moved(const events::v1::Slip& slip) {
  if (slip.cause() == events::v1::Slip::CAUSE_UNSPECIFIED) return "";
  const std::string cause = Word(events::v1::Slip::Cause_Name(slip.cause()));
  return slip.by().empty() ? cause : cause + " " + slip.by();
}

}  // namespace

std::string ExactTime(int64_t time_ms, int64_t now_ms) {
  return fmt::format("{}.{:03}", ShortTime(time_ms, now_ms), time_ms % 1000);
}

std::string StateText(const StoryStep& step) {
  return step.reason.empty() ? step.state : fmt::format("{} ({})", step.state, step.reason);
}

std::string DetailText(const StoryStep& step, int64_t now_ms) {
  std::string text = step.message;
  const auto say = [&text](const std::string& more) {
    if (!text.empty()) text += "; ";
    text += more;
  };
  if (!step.nodes.empty()) say("on " + step.nodes);
  if (step.start_ms != 0 && step.state == "Pending") {
    say(fmt::format(
        "{} for {}", step.firm ? "promised" : "expected", ShortTime(step.start_ms, now_ms)));
  }
  if (!step.moved.empty()) say("later, or not promised any more, for: " + step.moved);
  return text;
}

StoryStep StepOf(const events::v1::JobFact& fact, Millis now) {
  StoryStep step{.time_ms = now.count(), .last_ms = now.count()};
  step.version = fact.version();
  step.attempt = fact.attempt();
  step.state = model::Name(static_cast<model::JobState>(fact.state()));
  step.reason = fact.reason();
  step.message = fact.message();
  step.start_ms = fact.start_ms();
  step.firm = fact.firm();
  step.moved = Moved(fact.slip());
  return step;
}

void JobStory::Meet(const Envelope& message) {
  std::string id;
  std::string name;
  if (message.has_job_submitted()) {
    id = message.job_submitted().job_id();
    name = FullName(message.job_submitted().workload());
  } else if (message.command_accepted().has_submit_claim()) {
    id = message.command_accepted().submit_claim().job_id();
    name = message.command_accepted().submit_claim().name();
  }
  if (id.empty() || id == id_ || (id != wanted_ && name != wanted_)) return;
  id_ = id;
  name_ = name;
  steps_.clear();
}

void JobStory::Tell(StoryCause cause, int64_t time_ms) {
  if (!steps_.empty()) {
    StoryStep& last = steps_.back();
    if (last.version == 0 && last.cause.type == cause.type && last.cause.text == cause.text) {
      ++last.times;
      last.last_ms = time_ms;
      return;
    }
  }
  steps_.push_back({.time_ms = time_ms, .cause = std::move(cause), .last_ms = time_ms});
}

void JobStory::Read(const verify::EventLine& line) {
  read_ = line;
  told_ = false;
  Meet(line.message);
  if (id_.empty()) return;
  const std::optional<std::string> text = TextFor(line.message, id_);
  if (!text.has_value()) return;
  Tell({line.offset, TypeOf(line.message), *text}, line.time.count());
  told_ = true;
}

void JobStory::Decide(const events::v1::JobFact& fact, Millis now) {
  if (id_.empty() || fact.job_id() != id_) return;
  StoryStep step = StepOf(fact, now);
  step.cause = {read_.offset,
                TypeOf(read_.message),
                told_ ? steps_.back().cause.text : EventText(read_.message),
                !told_};
  if (fact.state() == events::v1::JOB_STATE_ALLOCATED && nodes_) {
    step.nodes = nodes_(id_, fact.attempt());
  }
  steps_.push_back(std::move(step));
}

json ToJson(const StoryStep& step) {
  return {{"version", step.version},
          {"attempt", step.attempt},
          {"state", step.state},
          {"reason", step.reason},
          {"message", step.message},
          {"startMs", step.start_ms},
          {"firm", step.firm},
          {"moved", step.moved},
          {"nodes", step.nodes}};
}

json ToJson(const JobStory& story) {
  json steps = json::array();
  for (const StoryStep& step : story.steps()) {
    json object = {{"timeMs", step.time_ms},
                   {"cause",
                    {{"offset", step.cause.offset},
                     {"type", step.cause.type},
                     {"text", step.cause.text},
                     {"ofOthers", step.cause.of_others}}}};
    if (step.version == 0) {
      object["times"] = step.times;
      object["lastMs"] = step.last_ms;
    } else {
      object.update(ToJson(step));
    }
    steps.push_back(std::move(object));
  }
  return {{"id", story.id()}, {"name", story.name()}, {"steps", std::move(steps)}};
}

std::string FormatStory(const JobStory& story, int64_t now_ms, bool colour) {
  const int64_t day_ms = story.steps().empty() ? now_ms : story.steps().back().last_ms;
  Table table({"TIME", "OFFSET", "WHAT", "DETAIL"});
  for (const StoryStep& step : story.steps()) {
    const std::string time = ExactTime(step.time_ms, day_ms);
    const std::string offset = fmt::format("{}", step.cause.offset);
    if (step.version == 0) {
      const std::string again =
          step.times == 1
              ? ""
              : fmt::format(" ({} times until {})", step.times, ExactTime(step.last_ms, day_ms));
      table.Add({time, offset, step.cause.type, step.cause.text + again});
      continue;
    }
    if (step.cause.of_others) {
      table.Add({time, offset, {step.cause.type, Colour::kDim}, {step.cause.text, Colour::kDim}});
    }
    table.Add(
        {"", "", {"  " + StateText(step), StateColour(step.state)}, DetailText(step, day_ms)});
  }
  return fmt::format("{} ({}), until {}\n\n{}",
                     story.name(),
                     story.id(),
                     ShortTime(day_ms, now_ms),
                     table.Render(colour));
}

}  // namespace fluxqueue::cli
