// How a process reaches the simulated cluster: calls that take their time, and watches.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"
#include "tests/simulation/sim_cluster.h"

namespace fluxqueue::simulation {
namespace {

using kubernetes::Resource;
using kubernetes::Selector;

// Between two events of a watch that says nothing else.
constexpr Millis kBookmarkInterval{15'000};

class SimThread final : public Thread {
 public:
  SimThread(Scheduler& scheduler, Owner& owner, Threads::Body body)
      : scheduler_(scheduler),
        number_(scheduler.Spawn(
            owner, owner.name + "'s", [body = std::move(body), token = stop_.get_token()] {
              body(token);
            })) {}
  ~SimThread() override { SimThread::Stop(); }
  void RequestStop() override { stop_.request_stop(); }
  void Stop() override { scheduler_.Kill(number_); }

 private:
  Scheduler& scheduler_;
  std::stop_source stop_;
  const uint64_t number_;
};

class SimThreads final : public Threads {
 public:
  SimThreads(Scheduler& scheduler, Owner& owner) : scheduler_(scheduler), owner_(owner) {}
  std::unique_ptr<Thread> Start(Body body) override {
    return std::make_unique<SimThread>(scheduler_, owner_, std::move(body));
  }

 private:
  Scheduler& scheduler_;
  Owner& owner_;
};

absl::Status NoAnswer() {
  return MakeStatus(absl::StatusCode::kDeadlineExceeded, "simulated: no answer");
}
absl::Status OkOr(const absl::Status& status) {
  return status;
}
absl::Status OkOr(const absl::StatusOr<std::string>& result) {
  return result.status();
}

bool Selects(const Selector& selector, const json& object) {
  CHECK(selector.fields.empty() && selector.space.empty(), "only labels are simulated");
  CHECK(selector.labels.empty() || selector.labels == kubernetes::kHeldLabel,
        "{} is not simulated",
        selector.labels);
  return selector.labels.empty() || object["metadata"]
                                        .value("labels", json::object())
                                        .contains(std::string(kubernetes::kHeldLabel));
}

class SimClient final : public kubernetes::Cluster {
 public:
  SimClient(SimCluster& cluster, Owner& owner)
      : cluster_(cluster),
        scheduler_(cluster.scheduler()),
        clock_(scheduler_),
        threads_(scheduler_, owner) {}

  absl::Status Bind(const kubernetes::Binding& binding) override {
    return Change([&cluster = cluster_, binding, sent = scheduler_.now()] {
      return cluster.Bind(binding, sent);
    });
  }

  absl::Status Watch(const Resource& resource,
                     const Selector& selector,
                     std::string_view resource_version,
                     Millis server_timeout,
                     const std::function<bool(std::string_view)>& sink,
                     std::stop_token stop) override;

  const Clock& clock() const override { return clock_; }
  Threads& threads() override { return threads_; }
  uint64_t NewSeed() override { return scheduler_.chance().Next(); }

 private:
  absl::StatusOr<std::string> DoGet(const Resource& resource,
                                    std::string_view space,
                                    std::string_view name,
                                    std::optional<Millis> /*timeout*/) override {
    RETURN_IF_ERROR(Ask());
    absl::StatusOr<std::string> object =
        cluster_.Get(resource, std::string(space), std::string(name));
    RETURN_IF_ERROR(Answer());
    return object;
  }

  absl::StatusOr<std::string> DoList(const Resource& resource,
                                     const Selector& selector,
                                     const std::function<absl::Status(std::string_view)>& item,
                                     int /*page*/) override {
    RETURN_IF_ERROR(Ask());
    const std::string version = std::to_string(cluster_.version());
    const std::vector<SimCluster::Stored> all = cluster_.All(resource);
    for (size_t i = 0; i < all.size(); ++i) {
      // The next page.
      if (i == all.size() / 2) RETURN_IF_ERROR(Answer());
      if (Selects(selector, all[i]->body)) RETURN_IF_ERROR(item(all[i]->text));
    }
    return version;
  }

  // Events for people: nothing comes of them.
  absl::StatusOr<std::string> DoCreate(const Resource& /*resource*/,
                                       std::string_view /*space*/,
                                       std::string_view body,
                                       std::optional<Millis> /*timeout*/) override {
    RETURN_IF_ERROR(Ask());
    return std::string(body);
  }

  absl::StatusOr<std::string> DoPatch(const Resource& resource,
                                      std::string_view space,
                                      std::string_view name,
                                      kubernetes::PatchType /*type*/,
                                      std::string_view body,
                                      std::string_view /*subresource*/) override {
    return Change(
        [&cluster = cluster_,
         resource,
         space = std::string(space),
         name = std::string(name),
         body = std::string(body)] { return cluster.Patch(resource, space, name, body); });
  }

  absl::Status DoDelete(const Resource& resource,
                        std::string_view space,
                        std::string_view name,
                        const kubernetes::DeleteOptions& options) override {
    return Change([&cluster = cluster_,
                   resource,
                   space = std::string(space),
                   name = std::string(name),
                   preconditions = options.preconditions] {
      return cluster.Delete(resource, space, name, preconditions);
    });
  }

  using Sink = std::function<bool(std::string_view)>;

  Chance& chance() { return scheduler_.chance(); }
  void TakeTime() {
    scheduler_.Sleep(Millis(chance().Between(0, cluster_.faults().slowest.count())));
  }

  // On the way there. Not OK: nothing is done.
  absl::Status Ask() {
    TakeTime();
    if (cluster_.away()) return Unavailable("simulated: the API server is away");
    if (!chance().OneIn(cluster_.faults().refuse_one_in)) return absl::OkStatus();
    return Unavailable("simulated: too many requests");
  }
  // On the way back. Not OK: it is not said what has become of it.
  absl::Status Answer() {
    TakeTime();
    return cluster_.away() || chance().OneIn(cluster_.faults().unsaid_one_in) ? NoAnswer()
                                                                              : absl::OkStatus();
  }

  // What is done late may outlive the process.
  template <typename Effect>
  auto Change(Effect effect) -> decltype(effect()) {
    RETURN_IF_ERROR(Ask());
    if (chance().OneIn(cluster_.faults().late_one_in)) {
      scheduler_.After(Millis(chance().Between(0, cluster_.faults().latest.count())),
                       [effect, &cluster = cluster_, backups = cluster_.backups()] {
                         if (cluster.backups() == backups) OkOr(effect()).IgnoreError();
                       });
      TakeTime();
      return NoAnswer();
    }
    auto done = effect();
    RETURN_IF_ERROR(Answer());
    return done;
  }

  // False: no more is wanted.
  bool TellLag(const SimCluster::Change& change, const Sink& sink) {
    scheduler_.Sleep(Millis(chance().Between(0, cluster_.faults().slowest_event.count())));
    return sink(
        fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", change.type, change.object->text));
  }

  SimCluster& cluster_;
  Scheduler& scheduler_;
  const SimClock clock_;
  SimThreads threads_;
};

bool TellExpired(const std::function<bool(std::string_view)>& sink) {
  return sink(R"({"type":"ERROR","object":{"code":410,"message":"too old resource version"}})"
              "\n");
}

bool TellBookmark(uint64_t version, const std::function<bool(std::string_view)>& sink) {
  return sink(fmt::format(
      "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{}\"}}}}}}\n",
      version));
}

absl::Status SimClient::Watch(const Resource& resource,
                              const Selector& selector,
                              std::string_view resource_version,
                              Millis server_timeout,
                              const Sink& sink,
                              std::stop_token stop) {
  RETURN_IF_ERROR(Ask());
  const uint64_t from = std::stoull(std::string(resource_version));
  if (from > cluster_.version()) return Unavailable("simulated: too large resource version");
  if (!sink({})) return absl::OkStatus();
  if (from < cluster_.expired()) {
    TellExpired(sink);
    return absl::OkStatus();
  }
  const std::vector<SimCluster::Change>& changes = cluster_.changes();
  const uint64_t cuts = cluster_.cuts();
  const TimePoint end = scheduler_.now() + server_timeout;
  auto next = static_cast<size_t>(
      std::ranges::upper_bound(changes, from, {}, &SimCluster::Change::version) - changes.begin());
  while (!stop.stop_requested() && scheduler_.now() < end) {
    if (cluster_.cuts() != cuts || cluster_.away()) return Unavailable("simulated: a watch is cut");
    if (next == changes.size()) {
      const uint64_t version = cluster_.version();
      const auto wake = [&] { return next < changes.size() || cluster_.cuts() != cuts; };
      const bool woken = scheduler_.Wait(wake, std::min(end, scheduler_.now() + kBookmarkInterval));
      if (!woken && !TellBookmark(version, sink)) return absl::OkStatus();
      continue;
    }
    const SimCluster::Change change = changes[next++];
    if (change.plural != resource.plural || !Selects(selector, change.object->body)) continue;
    if (!TellLag(change, sink)) return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<kubernetes::Cluster> SimCluster::For(Owner& owner) {
  return std::make_unique<SimClient>(*this, owner);
}

}  // namespace fluxqueue::simulation
