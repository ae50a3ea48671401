#include "libs/simulation/gantt.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "libs/simulation/summary.h"

namespace fluxqueue::simulation {
namespace {

constexpr uint32_t kIdle = std::numeric_limits<uint32_t>::max();

struct Change {
  Millis time;
  bool start;  // ends come first
  uint32_t job;
};

std::vector<Change> ChangesOf(const std::vector<Outcome>& outcomes) {
  std::vector<Change> changes;
  for (uint32_t i = 0; i < outcomes.size(); ++i) {
    if (!Started(outcomes[i])) continue;
    changes.push_back({outcomes[i].started, true, i});
    if (outcomes[i].end == Outcome::End::kEnded) changes.push_back({outcomes[i].ended, false, i});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.start < b.start;
  });
  return changes;
}

// Which job has which processors: the lowest that are free. Kept are the rows that are drawn.
class Processors {
 public:
  Processors(int64_t processors, size_t rows)
      : free_{{0, processors}}, holders_(rows, kIdle), processors_(processors) {}

  void Start(uint32_t job, int64_t wanted) {
    std::vector<Range>& held = held_[job];
    while (wanted > 0 && !free_.empty()) {
      const auto lowest = free_.begin();
      const int64_t from = lowest->first;
      const int64_t to = std::min(lowest->second, from + wanted);
      const int64_t end = lowest->second;
      free_.erase(lowest);
      if (to < end) free_.emplace(to, end);
      held.emplace_back(from, to);
      wanted -= to - from;
      Mark({from, to}, job);
    }
  }

  void End(uint32_t job) {
    for (const Range& range : held_[job]) {
      Mark(range, kIdle);
      Free(range);
    }
    held_.erase(job);
  }

  uint32_t Holder(size_t row) const { return holders_[row]; }

 private:
  using Range = std::pair<int64_t, int64_t>;

  void Free(Range range) {
    auto next = free_.lower_bound(range.first);
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->second == range.first) {
        range.first = before->first;
        free_.erase(before);
      }
    }
    if (next != free_.end() && next->first == range.second) {
      range.second = next->second;
      free_.erase(next);
    }
    free_.emplace(range);
  }

  // The rows whose middle lies in the range.
  void Mark(const Range& range, uint32_t job) {
    const auto rows = static_cast<int64_t>(holders_.size());
    for (int64_t row = range.first * rows / processors_; row < rows; ++row) {
      const int64_t processor = (2 * row + 1) * processors_ / (2 * rows);
      if (processor >= range.second) break;
      if (processor >= range.first) holders_[static_cast<size_t>(row)] = job;
    }
  }

  std::map<int64_t, int64_t> free_;  // from, to
  std::map<uint32_t, std::vector<Range>> held_;
  std::vector<uint32_t> holders_;  // by row
  const int64_t processors_;
};

// How much of the nodes that are drawn is in use.
class Nodes {
 public:
  Nodes(const Machine& machine, size_t rows) : machine_(machine), used_(machine.offers.size()) {
    for (size_t row = 0; row < rows; ++row) {
      drawn_.push_back((2 * row + 1) * machine.offers.size() / (2 * rows));
    }
    for (const trace::TraceNode& node : machine.offers) {
      const bool gpus = node.offers.contains(trace::kGpuMilli);
      measures_.emplace_back(gpus ? trace::kGpuMilli : std::string_view("cpu"));
    }
  }

  void Change(const trace::TraceJob& job, const std::vector<Place>& places, int sign) {
    for (const Place& place : places) {
      const auto amount = job.requests.find(measures_[place.node]);
      if (amount != job.requests.end()) used_[place.node] += sign * amount->second;
    }
  }

  // 0: nothing; kLevels: all.
  uint8_t Level(size_t row) const {
    const size_t node = drawn_[row];
    const auto offer = machine_.offers[node].offers.find(measures_[node]);
    if (offer == machine_.offers[node].offers.end() || used_[node] <= 0) return 0;
    const int64_t level = (used_[node] * Gantt::kLevels + offer->second - 1) / offer->second;
    return static_cast<uint8_t>(std::clamp<int64_t>(level, 1, Gantt::kLevels));
  }

 private:
  const Machine& machine_;
  std::vector<size_t> drawn_;
  std::vector<std::string_view> measures_;
  std::vector<int64_t> used_;
};

// Columns one after another; what is equal to its left neighbour grows it.
class Bars {
 public:
  explicit Bars(size_t rows) : open_(rows), ids_(rows, kIdle) {}

  // `id` kIdle: nothing to be seen.
  void Put(uint32_t column, size_t row, uint32_t id, uint8_t kind) {
    if (ids_[row] != id) {
      Close(row);
      ids_[row] = id;
      open_[row] = {static_cast<uint32_t>(row), column, column, kind};
    }
    open_[row].to = column + 1;
  }

  std::vector<Gantt::Bar> Take() {
    for (size_t row = 0; row < open_.size(); ++row) Close(row);
    std::stable_sort(
        bars_.begin(), bars_.end(), [](const auto& a, const auto& b) { return a.row < b.row; });
    return std::move(bars_);
  }

 private:
  void Close(size_t row) {
    if (ids_[row] != kIdle) bars_.push_back(open_[row]);
  }

  std::vector<Gantt::Bar> open_;
  std::vector<uint32_t> ids_;
  std::vector<Gantt::Bar> bars_;
};

// change(change) for what happens up to the middle of each column, then column(number).
template <typename OnChange, typename OnColumn>
void Sweep(const std::vector<Outcome>& outcomes,
           double span_s,
           const OnChange& on_change,
           const OnColumn& on_column) {
  Millis first = Millis::max();
  for (const Outcome& outcome : outcomes) first = std::min(first, outcome.submitted);
  const std::vector<Change> changes = ChangesOf(outcomes);
  auto next = changes.begin();
  for (uint32_t column = 0; column < Gantt::kColumns; ++column) {
    const double middle_s = span_s * (column + 0.5) / Gantt::kColumns;
    const Millis until = first + Millis(static_cast<int64_t>(middle_s * 1000));
    for (; next != changes.end() && next->time <= until; ++next) on_change(*next);
    on_column(column);
  }
}

}  // namespace

Gantt GanttOf(const Workload& workload,
              const Machine& machine,
              const std::vector<Outcome>& outcomes,
              double span_s) {
  Gantt gantt;
  gantt.of_nodes = !machine.homogeneous();
  const auto count = gantt.of_nodes ? machine.offers.size() : size_t(machine.processors);
  gantt.rows = std::min(Gantt::kRows, count);
  Bars bars(gantt.rows);
  if (gantt.of_nodes) {
    gantt.rows_are = fmt::format("nodes ({} of {})", gantt.rows, count);
    Nodes nodes(machine, gantt.rows);
    Sweep(
        outcomes,
        span_s,
        [&](const Change& change) {
          const trace::TraceJob& job = workload.jobs[change.job];
          nodes.Change(job, outcomes[change.job].places, change.start ? 1 : -1);
        },
        [&](uint32_t column) {
          for (size_t row = 0; row < gantt.rows; ++row) {
            const uint8_t level = nodes.Level(row);
            bars.Put(column, row, level == 0 ? kIdle : level, level);
          }
        });
  } else {
    gantt.rows_are = fmt::format("processors (0 to {})", count - 1);
    Processors processors(machine.processors, gantt.rows);
    Sweep(
        outcomes,
        span_s,
        [&](const Change& change) {
          if (!change.start) return processors.End(change.job);
          processors.Start(change.job, ProcessorsOf(workload.jobs[change.job]));
        },
        [&](uint32_t column) {
          for (size_t row = 0; row < gantt.rows; ++row) {
            const uint32_t job = processors.Holder(row);
            const bool behind = job != kIdle && outcomes[job].backfilled;
            const auto shade = static_cast<uint8_t>(job % 2);
            bars.Put(column, row, job, static_cast<uint8_t>(shade + 2 * (behind ? 1 : 0)));
          }
        });
  }
  gantt.bars = bars.Take();
  return gantt;
}

}  // namespace fluxqueue::simulation
