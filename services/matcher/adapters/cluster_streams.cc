// The streams that look at a pool: its graph piece by piece, and what becomes of its jobs.
#include <chrono>
#include <utility>

#include "libs/base/status_macros.h"
#include "services/matcher/adapters/cluster_calls.h"
#include "services/matcher/rpc/strand.h"

namespace fluxqueue::matcher {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

PoolDesk::TimePoint Soon() {
  return std::chrono::steady_clock::now() + Claims::kPatience;
}

}  // namespace

class ClusterCalls::Reader final : public GraphReader {
 public:
  Reader(ClusterCalls& calls, const v1::GetGraphRequest& request)
      : calls_(calls), request_(request), state_(std::make_shared<State>()) {}

  void Next(v1::GetGraphResponse* piece, DonePiece done) override {
    piece->Clear();
    const auto fill = [state = state_, view = request_.view(), piece, done] {
      done(state->Fill(view, piece));
    };
    if (state_->view != nullptr) {
      calls_.workers_.Post(fill);
      return;
    }
    calls_.Look(PoolOf(request_.pool()),
                Soon(),
                [state = state_, fill, done = std::move(done)](absl::StatusOr<View> view) {
                  if (!view.ok()) return done(view.status());
                  state->view = *std::move(view);
                  state->writer.emplace(state->view->Write());
                  fill();
                });
  }

 private:
  struct State {
    bool Fill(v1::GetGraphRequest::View what, v1::GetGraphResponse* piece) {
      if (what != v1::GetGraphRequest::VIEW_SUMMARY) {
        piece->set_jgf(writer->Next(kPieceBytes));
        return !piece->jgf().empty();
      }
      if (std::exchange(summarised, true)) return false;
      view->Summarise(piece);
      return true;
    }

    View view;
    std::optional<graph::JgfWriter> writer;
    bool summarised = false;
  };

  ClusterCalls& calls_;
  const v1::GetGraphRequest request_;
  const std::shared_ptr<State> state_;
};

std::unique_ptr<GraphReader> ClusterCalls::GetGraph(const v1::GetGraphRequest& request) {
  return std::make_unique<Reader>(*this, request);
}

// What a watch is to be told next: the last state of each job that has changed. Told one after
// another on a strand, and while that is under way, changes of one job are one.
class ClusterCalls::Watched : public std::enable_shared_from_this<Watched> {
 public:
  using Event = v1::WatchAllocationsResponse;

  Watched(std::shared_ptr<AllocationWatch> watch, rpc::WorkerPool& workers)
      : watch_(std::move(watch)), strand_(std::make_shared<Strand>(workers)) {}

  bool ended() const { return watch_->ended(); }
  void End(const absl::Status& status) { watch_->End(status); }

  // On the loop's thread. `beginning`: these are all.
  void Tell(std::function<absl::StatusOr<View>()> nodes, Jobs jobs, bool beginning) {
    const std::lock_guard lock(mutex_);
    nodes_ = std::move(nodes);
    for (auto& [job_id, held] : jobs) next_[job_id] = std::move(held);
    if (std::exchange(posted_, true)) return;
    strand_->Post(Strand::Length::kLong,
                  [self = shared_from_this(), beginning] { self->Push(beginning); });
  }

 private:
  void Push(bool beginning) {
    Jobs jobs;
    std::function<absl::StatusOr<View>()> nodes;
    {
      const std::lock_guard lock(mutex_);
      jobs.swap(next_);
      nodes = std::exchange(nodes_, nullptr);
      posted_ = false;
    }
    const absl::StatusOr<View> view = nodes();
    if (!view.ok()) return watch_->End(view.status());
    const Wanted wanted{watch_->request().format(), watch_->request().nodes()};
    for (const auto& [job_id, held] : jobs) {
      // Given back before the client was told of it.
      if (beginning && held.empty()) continue;
      Event event;
      event.set_kind(beginning ? Event::KIND_HELD : KindOf(held));
      event.set_job(NumberOf(job_id));
      event.set_job_id(job_id);
      if (!held.empty()) (*view)->WriteJob(held, wanted, event.mutable_allocation());
      if (beginning) {
        watch_->PushHeld(std::move(event));
      } else {
        watch_->Push(std::move(event));
      }
    }
    if (!beginning) return;
    Event synced;
    synced.set_kind(Event::KIND_SYNCED);
    watch_->PushHeld(std::move(synced));
  }

  const std::shared_ptr<AllocationWatch> watch_;
  const std::shared_ptr<Strand> strand_;
  std::mutex mutex_;
  Jobs next_;  // guarded by mutex_, as what follows
  std::function<absl::StatusOr<View>()> nodes_;
  bool posted_ = false;
};

void ClusterCalls::Watch(std::shared_ptr<AllocationWatch> watch) {
  const absl::Status format = FormatOf(watch->request().format()).status();
  if (!format.ok()) return watch->End(format);
  const std::string pool = PoolOf(watch->request().pool());
  const auto watched = std::make_shared<Watched>(std::move(watch), workers_);
  const auto changed = [this, pool, watched](const PoolAtHand* at,
                                             const std::vector<graph::AllocationKey>& keys) {
    if (at == nullptr) {
      return watched->End(Unavailable("pool {} moves to another replica: watch again", pool));
    }
    const graph::Engine& engine = at->core.engine();
    Jobs jobs;
    for (const graph::AllocationKey& key : keys) jobs[key.job_id];
    for (auto& [job_id, held] : jobs) {
      for (const graph::AllocationKey& key : engine.KeysOf(job_id)) {
        held.push_back(*engine.Find(key));
      }
    }
    watched->Tell(NodesOf(pool, *at), std::move(jobs), false);
  };
  desk_.Ask(
      pool, Soon(), [this, pool, watched, changed](const absl::StatusOr<const PoolAtHand*>& at) {
        if (!at.ok()) return watched->End(at.status());
        const graph::Engine& engine = (*at)->core.engine();
        Jobs jobs;
        for (const graph::AllocationKey& key : engine.Keys()) {
          jobs[key.job_id].push_back(*engine.Find(key));
        }
        watched->Tell(NodesOf(pool, **at), std::move(jobs), true);
        desk_.Watch(pool, {[watched] { return watched->ended(); }, changed});
      });
}

}  // namespace fluxqueue::matcher
