// top: a live screen.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/kafka/tail.h"
#include "libs/kafka/topics.h"
#include "libs/model/job_state.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/screen.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/top_screen.h"

namespace fluxqueue::cli {
namespace {

constexpr size_t kPage = 10;
constexpr size_t kMostJobs = 1000;
// Of the time that passes, a look takes no more than one part in so many: with 100,000 jobs in line
// it is work for the database.
constexpr int kShareOfLooks = 5;

struct Options {
  double seconds = 1;
};

class TopReader {
 public:
  explicit TopReader(const SystemConfig& config)
      : brokers_(config.brokers),
        connection_(PostgresOptions(config.dsn)),
        store_(PostgresOptions(config.dsn)) {}

  absl::Status Open(Millis now) {
    ASSIGN_OR_RETURN(admin_, kafka::Admin::Create(brokers_));
    std::vector<kafka::TopicPartition> partitions;
    partitions.reserve(kafka::kJobsPartitions);
    for (int i = 0; i < kafka::kJobsPartitions; ++i) {
      partitions.emplace_back(kafka::TopicNames().jobs, i);
    }
    const Millis since = now - std::chrono::seconds(Throughput::kSeconds);
    ASSIGN_OR_RETURN(facts_, kafka::Tail::Open(brokers_, partitions, since));
    return absl::OkStatus();
  }

  absl::Status Read(Millis now, TopView* view) {
    throughput_.MoveTo(now.count());
    RETURN_IF_ERROR(ReadFacts());
    ASSIGN_OR_RETURN(view->jobs, store_.Front(kMostJobs));
    ASSIGN_OR_RETURN(const auto queues, store_.Queues(/*ended=*/false));
    view->states.clear();
    for (const job_store::QueueInfo& queue : queues) {
      for (const auto& [state, jobs] : queue.jobs) view->states[state] += jobs;
    }
    ASSIGN_OR_RETURN(view->nodes, ReadClusterView(connection_));
    ASSIGN_OR_RETURN(view->pipeline, ReadPipeline(connection_, *admin_));
    view->now_ms = now.count();
    return absl::OkStatus();
  }

  const Throughput& throughput() const { return throughput_; }

 private:
  // What has come since the last time.
  absl::Status ReadFacts() {
    while (true) {
      ASSIGN_OR_RETURN(const auto read, facts_->Next(Millis(facts_->at_end() ? 0 : 100)));
      if (!read.has_value()) return absl::OkStatus();
      events::v1::Envelope message;
      if (!message.ParseFromString(read->message.value) || !message.has_job_fact()) continue;
      throughput_.Add(model::Name(static_cast<model::JobState>(message.job_fact().state())),
                      read->message.append_time.count());
    }
  }

  const kafka::Brokers brokers_;
  postgres::Connection connection_;
  job_store::JobStore store_;
  std::unique_ptr<kafka::Admin> admin_;
  std::unique_ptr<kafka::Tail> facts_;
  Throughput throughput_;
};

// False: it is over.
bool Apply(Key key, TopState* state) {
  switch (key) {
    case Key::kQuit:
      return false;
    case Key::kUp:
      state->first -= std::min<size_t>(state->first, 1);
      break;
    case Key::kDown:
      ++state->first;
      break;
    case Key::kPageUp:
      state->first -= std::min(state->first, kPage);
      break;
    case Key::kPageDown:
      state->first += kPage;
      break;
    case Key::kPause:
      state->paused = !state->paused;
      break;
    case Key::kNone:
    case Key::kResize:
      break;
  }
  return true;
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  TopReader reader(config);
  TopView view;
  ASSIGN_OR_RETURN(const auto screen, Screen::Open());
  RETURN_IF_ERROR(reader.Open(context.Now()));
  TopState state;
  Key key = Key::kNone;
  const Millis every(static_cast<int64_t>(options.seconds * 1000));
  Millis next{0};
  do {
    if (!state.paused && context.Now() >= next) {
      const Millis begin = context.Now();
      const absl::Status status = reader.Read(begin, &view);
      view.trouble = Message(status);
      next = std::max(begin + every, begin + kShareOfLooks * (context.Now() - begin));
    }
    screen->Draw(DrawTop(view, reader.throughput(), WindowSize(), context.colour, &state));
    key = screen->Wait(state.paused ? every : std::max(Millis(0), next - context.Now()));
  } while (Apply(key, &state));
  return 0;
}

}  // namespace

void RegisterTop(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand(
      "top", "A live screen: throughput, the line, the cluster, how far behind the services are");
  sub->group("Cluster");
  const auto options = std::make_shared<Options>();
  sub->add_option("--every", options->seconds, "Seconds between two looks")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
  sub->footer(
      "Keys: q quits, j and k or the arrows scroll, space and page keys by ten, p pauses.\n\n"
      "Throughput is over ten seconds, its line over a minute; lag is records that a service has "
      "not handled, outbox\n"
      "messages that it has not sent.");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
