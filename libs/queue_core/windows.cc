#include "libs/queue_core/windows.h"

#include <algorithm>
#include <string>

#include "libs/base/status_macros.h"

namespace fluxqueue::queue_core {

using events::v1::WindowConfigured;

namespace {

bool Names(const WindowConfigured& window, const std::string& name_space) {
  const auto& spaces = window.namespaces();
  return std::find(spaces.begin(), spaces.end(), name_space) != spaces.end();
}

bool IsOver(const WindowConfigured& window, int64_t now_ms) {
  return window.end_ms() <= now_ms;
}

}  // namespace

absl::Status CheckWindow(const WindowConfigured& configured) {
  if (configured.window().empty()) return InvalidArgument("WindowConfigured names no window");
  if (!configured.deleted() && configured.end_ms() <= configured.start_ms()) {
    return InvalidArgument("window {}: from {} to {} ms; its end must be later than its start",
                           configured.window(),
                           configured.start_ms(),
                           configured.end_ms());
  }
  return absl::OkStatus();
}

std::optional<Windows> WithWindow(const PoolState& state, const WindowConfigured& configured) {
  Windows windows = state.windows == nullptr ? Windows() : *state.windows;
  const auto place = std::lower_bound(
      windows.begin(), windows.end(), configured, [](const auto& a, const auto& b) {
        return a.window() < b.window();
      });
  const bool known = place != windows.end() && place->window() == configured.window();
  const bool wanted = !configured.deleted() && !IsOver(configured, state.now_ms);
  if (!known && !wanted) return std::nullopt;
  if (known && wanted) {
    *place = configured;
  } else if (wanted) {
    windows.insert(place, configured);
  } else {
    windows.erase(place);
  }
  return windows;
}

std::optional<Windows> WithoutPastWindows(const PoolState& state) {
  if (state.windows == nullptr) return std::nullopt;
  const auto is_over = [&state](const auto& window) { return IsOver(window, state.now_ms); };
  if (std::none_of(state.windows->begin(), state.windows->end(), is_over)) return std::nullopt;
  Windows windows = *state.windows;
  std::erase_if(windows, is_over);
  return windows;
}

std::optional<int64_t> NextWindowEnd(const PoolState& state) {
  if (state.windows == nullptr) return std::nullopt;
  const auto first = std::min_element(
      state.windows->begin(), state.windows->end(), [](const auto& a, const auto& b) {
        return a.end_ms() < b.end_ms();
      });
  return first->end_ms();
}

void NameWindows(const PoolState& state, const Job& job, events::v1::Candidate* candidate) {
  if (state.windows == nullptr) return;
  for (const WindowConfigured& window : *state.windows) {
    if (Names(window, job.workload->namespace_())) candidate->add_windows(window.window());
  }
}

const WindowConfigured* WindowAhead(const PoolState& state, const Job& job, int64_t duration_ms) {
  if (state.windows == nullptr) return nullptr;
  const WindowConfigured* first = nullptr;
  for (const WindowConfigured& window : *state.windows) {
    const bool meets = duration_ms == 0 || window.start_ms() < state.now_ms + duration_ms;
    if (!meets || Names(window, job.workload->namespace_())) continue;
    if (first == nullptr || window.start_ms() < first->start_ms()) first = &window;
  }
  return first;
}

}  // namespace fluxqueue::queue_core
