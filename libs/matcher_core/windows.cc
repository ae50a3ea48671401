#include "libs/matcher_core/windows.h"

#include <algorithm>

#include "libs/base/clock.h"
#include "libs/base/status_macros.h"
#include "libs/graph/holding.h"
#include "libs/matcher_core/candidate.h"

namespace fluxqueue::matcher_core {

using events::v1::Candidate;
using events::v1::Outcome;
using events::v1::WindowConfigured;
using matcher::v1::PoolState;

namespace {

// The year 9999 is over.
constexpr int64_t kLastMs = 253'402'300'800'000;

constexpr int64_t kMsPerSecond = 1000;
constexpr int64_t kSecondsPerMinute = 60;
constexpr int64_t kSecondsPerHour = 3600;

// Whole seconds, rounded towards the past.
int64_t SecondsBefore(int64_t ms) {
  return ms / kMsPerSecond - (ms % kMsPerSecond < 0 ? 1 : 0);
}

graph::Constraint NodesOf(const WindowConfigured& window) {
  std::vector<graph::Constraint> labels;
  for (const events::v1::Label& label : window.labels()) {
    labels.push_back(graph::Constraint::HasLabel(label.key(), label.value()));
  }
  const bool has_labels = !labels.empty();
  graph::Constraint labelled = graph::Constraint::And(std::move(labels));
  if (window.nodes().empty()) return labelled;
  graph::Constraint named =
      graph::Constraint::IsAnyHost({window.nodes().begin(), window.nodes().end()});
  if (!has_labels) return named;
  return graph::Constraint::Or({std::move(named), std::move(labelled)});
}

// "8 h", "90 min", "30 s"
std::string Lasting(int64_t seconds) {
  if (seconds % kSecondsPerHour == 0) return fmt::format("{} h", seconds / kSecondsPerHour);
  if (seconds % kSecondsPerMinute == 0) return fmt::format("{} min", seconds / kSecondsPerMinute);
  return fmt::format("{} s", seconds);
}

// How many nodes a job may use, and whether all of it would have room there now.
struct Room {
  uint32_t nodes = 0;
  bool has_all = true;
};

// Each group of slots is asked for by itself, as an explanation of all tells of one that is short.
Room RoomFor(const graph::Engine& engine, const graph::Jobspec& jobspec) {
  Room room;
  graph::Jobspec one = jobspec;
  for (const graph::SlotGroup& group : jobspec.groups) {
    one.groups = {group};
    one.slots = group.slots;
    const graph::Explanation why = engine.Explain(one, graph::Wording::kShort);
    room.nodes = why.matching;
    room.has_all = room.has_all && why.slots_now >= group.slots;
  }
  return room;
}

constexpr std::string_view kWouldNotEnd = ", and it would not end before";

// Those that the candidate may not use and would meet if it started now, by their start.
std::vector<const WindowConfigured*> WindowsAhead(const PoolState& state,
                                                  const Candidate& candidate,
                                                  int64_t now_s) {
  std::vector<const WindowConfigured*> met;
  for (const WindowConfigured& window : state.windows()) {
    const bool meets = ClosureOf(state, window, now_s).Meets(now_s, now_s + DurationOf(candidate));
    if (meets && !MayUse(candidate, window)) met.push_back(&window);
  }
  std::stable_sort(met.begin(), met.end(), [](const auto* a, const auto* b) {
    return a->start_ms() < b->start_ms();
  });
  return met;
}

}  // namespace

absl::Status CheckWindow(const WindowConfigured& window) {
  if (window.window().empty()) return InvalidArgument("WindowConfigured names no window");
  const bool is_time =
      0 <= window.start_ms() && window.start_ms() < window.end_ms() && window.end_ms() <= kLastMs;
  if (!window.deleted() && !is_time) {
    return InvalidArgument(
        "window {}: from {} to {} ms; allowed: from 0 on, to a later time up to {}",
        window.window(),
        window.start_ms(),
        window.end_ms(),
        kLastMs);
  }
  return absl::OkStatus();
}

bool IsSet(const WindowConfigured& window, const PoolState& state) {
  return std::ranges::any_of(state.windows(), [&window](const WindowConfigured& one) {
    return one.window() == window.window() && one.SerializeAsString() == window.SerializeAsString();
  });
}

void SetWindow(const WindowConfigured& window, PoolState* state) {
  auto* windows = state->mutable_windows();
  const auto place =
      std::lower_bound(windows->begin(), windows->end(), window, [](const auto& a, const auto& b) {
        return a.window() < b.window();
      });
  const bool known = place != windows->end() && place->window() == window.window();
  if (window.deleted()) {
    if (known) windows->erase(place);
  } else if (known) {
    *place = window;
  } else {
    const auto index = place - windows->begin();
    *windows->Add() = window;
    std::rotate(windows->begin() + index, windows->end() - 1, windows->end());
  }
}

void DropPastWindows(Millis now, PoolState* state) {
  auto* windows = state->mutable_windows();
  const auto over =
      std::remove_if(windows->begin(), windows->end(), [now](const WindowConfigured& window) {
        return window.end_ms() <= now.count();
      });
  windows->erase(over, windows->end());
}

bool MayUse(const Candidate& candidate, const WindowConfigured& window) {
  return std::binary_search(
      candidate.windows().begin(), candidate.windows().end(), window.window());
}

graph::Closure ClosureOf(const PoolState& state, const WindowConfigured& window, int64_t now_s) {
  const int64_t from_s = SecondsBefore(window.start_ms() - state.beginning_ms());
  // The pool's time may have begun up to a second before what is known of it: what is promised
  // behind the window is not promised in it. And it is not over yet, whatever is known.
  const int64_t to_s =
      std::max(SecondsBefore(window.end_ms() - state.beginning_ms() - 1) + 1, now_s) + 1;
  return {.nodes = NodesOf(window),
          .from_s = std::clamp<int64_t>(from_s, 0, kNeverOver - 1),
          .to_s = std::min(to_s, kNeverOver)};
}

std::vector<graph::Closure> Closures(const PoolState& state,
                                     const std::vector<std::string>& open,
                                     int64_t now_s) {
  std::vector<graph::Closure> closures;
  for (const WindowConfigured& window : state.windows()) {
    const bool is_over = window.end_ms() - state.beginning_ms() <= now_s * kMsPerSecond;
    if (is_over || std::binary_search(open.begin(), open.end(), window.window())) continue;
    closures.push_back(ClosureOf(state, window, now_s));
  }
  return closures;
}

std::optional<std::string> WhyKept(const View& view,
                                   const Candidate& candidate,
                                   const graph::Jobspec& jobspec,
                                   const graph::Explanation& why,
                                   int64_t now_s) {
  const std::vector<const WindowConfigured*> met = WindowsAhead(view.state, candidate, now_s);
  if (met.empty()) return std::nullopt;
  graph::Jobspec elsewhere = jobspec;
  Room room{why.matching, why.slots_now >= jobspec.slots};
  if (jobspec.groups.size() > 1) room = RoomFor(view.engine, elsewhere);
  if (!room.has_all) return std::nullopt;
  for (const WindowConfigured* window : met) {
    const uint32_t nodes_before = room.nodes;
    elsewhere.constraint =
        graph::Constraint::And({elsewhere.constraint, graph::Constraint::Not(NodesOf(*window))});
    room = RoomFor(view.engine, elsewhere);
    if (room.has_all) continue;
    const uint32_t kept = nodes_before - room.nodes;
    const std::string keeps = fmt::format("there is room, but window {} keeps {} node{}",
                                          window->window(),
                                          kept,
                                          kept == 1 ? "" : "s");
    if (ClosureOf(view.state, *window, now_s).from_s <= now_s) {
      return fmt::format("{} until {}", keeps, FormatSeconds(Millis(window->end_ms())));
    }
    return fmt::format(
        "{} from {} on{}", keeps, FormatSeconds(Millis(window->start_ms())), kWouldNotEnd);
  }
  return std::nullopt;
}

void SayLength(const Candidate& candidate, Outcome* outcome) {
  if (!outcome->reason().ends_with(kWouldNotEnd)) return;
  outcome->mutable_reason()->append(
      candidate.duration_s() == 0
          ? " (it does not say how long it takes)"
          : fmt::format(" (it may take {})", Lasting(candidate.duration_s())));
}

}  // namespace fluxqueue::matcher_core
