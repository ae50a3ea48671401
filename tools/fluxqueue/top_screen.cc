#include "tools/fluxqueue/top_screen.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "tools/fluxqueue/node_map.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

constexpr size_t kRateSeconds = 10;

bool IsEnd(std::string_view state) {
  return state == "Succeeded" || state == "Failed" || state == "Cancelled" || state == "Rejected";
}

std::string Headline(const TopView& view, bool colour, bool paused) {
  const auto in = [&view](std::initializer_list<const char*> states) {
    int64_t jobs = 0;
    for (const char* state : states) {
      if (const auto it = view.states.find(state); it != view.states.end()) jobs += it->second;
    }
    return Thousands(static_cast<uint64_t>(jobs));
  };
  size_t up = 0;
  for (const NodeView& node : view.nodes) up += node.state == "up" ? 1 : 0;
  std::string line =
      fmt::format("{}  {}   {} wait   {} start   {} run   {} stop   {} of {} nodes up",
                  Paint("fluxqueue", Colour::kBold, colour),
                  ShortTime(view.now_ms, view.now_ms),
                  in({"Pending", "Submitted"}),
                  in({"Allocated", "Bound"}),
                  in({"Running"}),
                  in({"Stopping"}),
                  up,
                  view.nodes.size());
  if (paused) line += "   " + Paint("paused", Colour::kYellow, colour);
  return line + "\n";
}

std::string Pipeline(const PipelineView& pipeline, bool colour) {
  const auto number = [colour](int64_t count) {
    return Paint(Thousands(static_cast<uint64_t>(count)),
                 count == 0 ? Colour::kNone : Colour::kYellow,
                 colour);
  };
  std::map<std::string, int64_t> lags;
  for (const ConsumerLag& consumer : pipeline.consumers) lags[consumer.service] += consumer.lag;
  std::string line = "lag      ";
  for (const auto& [service, lag] : lags) line += fmt::format("  {} {}", service, number(lag));
  line += "\noutbox   ";
  for (const OutboxDepth& outbox : pipeline.outboxes) {
    line += fmt::format("  {} {}", outbox.service, number(outbox.messages));
  }
  return line + "\n";
}

std::string Jobs(const TopView& view, size_t first, size_t rows, bool colour) {
  Table table({"POSITION", "JOB", "QUEUE", "PODS", "STATE", "REASON", "START", "AGE"});
  const size_t end = std::min(view.jobs.size(), first + rows);
  for (size_t i = first; i < end; ++i) {
    const job_store::Job& job = view.jobs[i];
    const Millis age =
        std::chrono::floor<std::chrono::seconds>(Millis(view.now_ms - job.created_ms));
    table.Add({job.position == 0 ? "-" : fmt::format("{}", job.position),
               job.FullName(),
               job.queue,
               job.SlotsText(),
               {job.state, StateColour(job.state)},
               job.reason.empty() ? "-" : job.reason,
               ShortTime(job.start_ms, view.now_ms),
               ShortDuration(age)});
  }
  return table.Render(colour);
}

}  // namespace

void Throughput::Add(std::string_view state, int64_t time_ms) {
  Counts* counts = state == "Running" ? &started_ : IsEnd(state) ? &ended_ : nullptr;
  const int64_t age = second_ - time_ms / 1000;
  if (counts == nullptr || age >= static_cast<int64_t>(kSeconds)) return;
  // By another clock than ours it may be later already.
  ++(*counts)[kSeconds - 1 - static_cast<size_t>(std::max<int64_t>(0, age))];
}

void Throughput::MoveTo(int64_t now_ms) {
  const int64_t second = now_ms / 1000;
  const auto steps = std::clamp<int64_t>(second - second_, 0, kSeconds);
  for (int64_t i = 0; i < steps; ++i) {
    for (Counts* counts : {&started_, &ended_}) {
      counts->pop_front();
      counts->push_back(0);
    }
  }
  second_ = std::max(second_, second);
}

double Throughput::Rate(const Counts& counts) {
  double sum = 0;
  for (size_t i = kSeconds - 1 - kRateSeconds; i < kSeconds - 1; ++i) sum += counts[i];
  return sum / static_cast<double>(kRateSeconds);
}

std::string Throughput::Sparkline() const {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const uint32_t most = std::max<uint32_t>(1, *std::max_element(ended_.begin(), ended_.end()));
  std::string line;
  for (const uint32_t count : ended_) line += count == 0 ? " " : kBars[(count * 8 - 1) / most];
  return line;
}

std::string DrawTop(
    const TopView& view, const Throughput& throughput, Size size, bool colour, TopState* state) {
  std::string text = Headline(view, colour, state->paused);
  text += view.trouble.empty() ? "\n" : Paint(view.trouble, Colour::kRed, colour) + "\n";
  text += fmt::format("a second   {:.1f} start  {:.1f} end   {}\n",
                      throughput.StartedRate(),
                      throughput.EndedRate(),
                      Paint(throughput.Sparkline(), Colour::kGreen, colour));
  text += Pipeline(view.pipeline, colour) + "\n";
  // The map's last line is its legend; on a small screen the legend stays.
  const std::string map = DrawNodeMap(view.nodes, size.columns, colour);
  const std::vector<std::string_view> rows = Lines(map);
  const size_t most = std::max<size_t>(1, size.rows / 3);
  const size_t skipped = rows.size() > most ? rows.size() - most : 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i < most - 1 || i >= most - 1 + skipped) text += fmt::format("{}\n", rows[i]);
  }
  text += "\n";
  // The table's head, and the keys.
  const size_t used = Lines(text).size() + 2;
  const size_t room = size.rows > used ? size.rows - used : 1;
  const size_t last = view.jobs.size() > room ? view.jobs.size() - room : 0;
  state->first = std::min(state->first, last);
  text += Jobs(view, state->first, room, colour);
  const size_t shown = std::min(view.jobs.size(), room);
  text += std::string(room - shown, '\n');
  int64_t live = 0;
  for (const auto& [name, jobs] : view.states) live += jobs;
  const size_t listed = view.jobs.size();
  return text +
         Paint(fmt::format("q quit   j k scroll   p pause   {} to {} of {}{} jobs",
                           shown == 0 ? 0 : state->first + 1,
                           state->first + shown,
                           std::cmp_less(listed, live) ? fmt::format("{} listed, of ", listed) : "",
                           Thousands(static_cast<uint64_t>(live))),
               Colour::kDim,
               colour);
}

}  // namespace fluxqueue::cli
