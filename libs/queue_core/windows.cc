// Windows: nodes that are kept for a time (WindowConfigured). The matcher keeps them; here is known
// who may use them nevertheless, and that what was refused is asked for again when one was set, was
// deleted or is over.
//
// Unlike what the matcher says, such a change may stand between a request and its answer without
// being known to it: then the answer ends the cycle as always, and another begins.
#include <algorithm>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/queue_core/core_impl.h"

namespace fluxqueue::queue_core {

using events::v1::WindowConfigured;

namespace {

bool Names(const WindowConfigured& window, const std::string& name_space) {
  const auto& spaces = window.namespaces();
  return std::find(spaces.begin(), spaces.end(), name_space) != spaces.end();
}

}  // namespace

absl::Status QueueCore::Impl::CheckWindow(const WindowConfigured& configured) {
  if (configured.window().empty()) return InvalidArgument("WindowConfigured names no window");
  if (!configured.deleted() && configured.end_ms() <= configured.start_ms()) {
    return InvalidArgument("window {}: from {} to {} ms; its end must be later than its start",
                           configured.window(),
                           configured.start_ms(),
                           configured.end_ms());
  }
  return absl::OkStatus();
}

void QueueCore::Impl::OnWindowConfigured(const WindowConfigured& configured) {
  Windows windows = state_.windows == nullptr ? Windows() : *state_.windows;
  const auto place = std::lower_bound(
      windows.begin(), windows.end(), configured, [](const auto& a, const auto& b) {
        return a.window() < b.window();
      });
  const bool known = place != windows.end() && place->window() == configured.window();
  const bool wanted = !configured.deleted() && configured.end_ms() > state_.now_ms;
  if (!known && !wanted) {
    ++out_->stale;
    return;
  }
  if (known && wanted) {
    *place = configured;
  } else if (wanted) {
    windows.insert(place, configured);
  } else {
    windows.erase(place);
  }
  if (wanted) state_.window_set = configured.window();
  SetWindows(std::move(windows));
}

void QueueCore::Impl::EndWindows() {
  if (state_.windows == nullptr) return;
  const auto is_over = [this](const WindowConfigured& window) {
    return window.end_ms() <= state_.now_ms;
  };
  if (std::none_of(state_.windows->begin(), state_.windows->end(), is_over)) return;
  Windows windows = *state_.windows;
  std::erase_if(windows, is_over);
  SetWindows(std::move(windows));
}

void QueueCore::Impl::SetWindows(Windows windows) {
  state_.windows = windows.empty() ? nullptr : std::make_shared<const Windows>(std::move(windows));
  state_.ask_again = true;
}

std::optional<int64_t> QueueCore::Impl::NextWindowEnd() const {
  if (state_.windows == nullptr) return std::nullopt;
  const auto first = std::min_element(
      state_.windows->begin(), state_.windows->end(), [](const auto& a, const auto& b) {
        return a.end_ms() < b.end_ms();
      });
  return first->end_ms();
}

void QueueCore::Impl::NameWindows(const Job& job, events::v1::Candidate* candidate) const {
  if (state_.windows == nullptr) return;
  for (const WindowConfigured& window : *state_.windows) {
    if (Names(window, job.workload->namespace_())) candidate->add_windows(window.window());
  }
}

const WindowConfigured* QueueCore::Impl::WindowAhead(const Job& job) const {
  if (state_.windows == nullptr) return nullptr;
  const int64_t duration_ms = PlannedDuration(job);
  const WindowConfigured* first = nullptr;
  for (const WindowConfigured& window : *state_.windows) {
    const bool meets = duration_ms == 0 || window.start_ms() < state_.now_ms + duration_ms;
    if (!meets || Names(window, job.workload->namespace_())) continue;
    if (first == nullptr || window.start_ms() < first->start_ms()) first = &window;
  }
  return first;
}

}  // namespace fluxqueue::queue_core
