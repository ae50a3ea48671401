#include "libs/simulation/gantt.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
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
  explicit Bars(size_t rows) : open_(rows) {}

  // `id`: cells with the same one belong together; kIdle: nothing to be seen.
  void Put(uint32_t column, size_t row, uint32_t id, uint8_t kind) {
    Open& open = open_[row];
    if (open.id != id) {
      Close(open);
      open = {id, {static_cast<uint32_t>(row), 1, column, column, kind}};
    }
    open.bar.to = column + 1;
  }

  // Those that are equal but for their rows, which are neighbours, become one.
  std::vector<Gantt::Bar> Take() {
    for (const Open& open : open_) Close(open);
    std::sort(closed_.begin(), closed_.end(), [](const Open& a, const Open& b) {
      return std::tie(a.bar.from, a.bar.to, a.id, a.bar.row) <
             std::tie(b.bar.from, b.bar.to, b.id, b.bar.row);
    });
    std::vector<Gantt::Bar> bars;
    uint32_t id = kIdle;
    for (const Open& next : closed_) {
      if (!bars.empty() && id == next.id && bars.back().from == next.bar.from &&
          bars.back().to == next.bar.to && bars.back().row + bars.back().rows == next.bar.row) {
        ++bars.back().rows;
      } else {
        bars.push_back(next.bar);
        id = next.id;
      }
    }
    return bars;
  }

 private:
  struct Open {
    uint32_t id = kIdle;
    Gantt::Bar bar{};
  };

  void Close(const Open& open) {
    if (open.id != kIdle) closed_.push_back(open);
  }

  std::vector<Open> open_;  // by row
  std::vector<Open> closed_;
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

std::vector<Gantt::Bar> BarsOfNodes(const Workload& workload,
                                    const Machine& machine,
                                    const std::vector<Outcome>& outcomes,
                                    double span_s,
                                    size_t rows) {
  Bars bars(rows);
  Nodes nodes(machine, rows);
  const auto change = [&](const Change& what) {
    nodes.Change(workload.jobs[what.job], outcomes[what.job].places, what.start ? 1 : -1);
  };
  const auto column = [&](uint32_t number) {
    for (size_t row = 0; row < rows; ++row) {
      const uint8_t level = nodes.Level(row);
      bars.Put(number, row, level == 0 ? kIdle : level, level);
    }
  };
  Sweep(outcomes, span_s, change, column);
  return bars.Take();
}

std::vector<Gantt::Bar> BarsOfProcessors(const Workload& workload,
                                         const Machine& machine,
                                         const std::vector<Outcome>& outcomes,
                                         double span_s,
                                         size_t rows) {
  Bars bars(rows);
  Processors processors(machine.processors, rows);
  const auto change = [&](const Change& what) {
    if (what.start) {
      processors.Start(what.job, ProcessorsOf(workload.jobs[what.job]));
    } else {
      processors.End(what.job);
    }
  };
  const auto column = [&](uint32_t number) {
    for (size_t row = 0; row < rows; ++row) {
      const uint32_t job = processors.Holder(row);
      const bool behind = job != kIdle && outcomes[job].backfilled;
      bars.Put(number,
               row,
               job,
               static_cast<uint8_t>(job % 2 + (behind ? uint32_t{Gantt::kBackfilled} : 0)));
    }
  };
  Sweep(outcomes, span_s, change, column);
  return bars.Take();
}

}  // namespace

Gantt GanttOf(const Workload& workload,
              const Machine& machine,
              const std::vector<Outcome>& outcomes,
              double span_s) {
  Gantt gantt;
  gantt.of_nodes = !machine.homogeneous();
  if (gantt.of_nodes) {
    gantt.rows = std::min(Gantt::kRows, machine.offers.size());
    gantt.rows_are = fmt::format("nodes ({} of {})", gantt.rows, machine.offers.size());
    gantt.bars = BarsOfNodes(workload, machine, outcomes, span_s, gantt.rows);
  } else {
    gantt.rows = static_cast<size_t>(std::min(int64_t{Gantt::kRows}, machine.processors));
    gantt.rows_are = fmt::format("processors (0 to {})", machine.processors - 1);
    gantt.bars = BarsOfProcessors(workload, machine, outcomes, span_s, gantt.rows);
  }
  return gantt;
}

}  // namespace fluxqueue::simulation
