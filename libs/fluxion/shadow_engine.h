// Two engines, of which one decides and the other is asked the same in the background, on a thread
// of its own: where would it have placed the job, or when? Differences are logged, and counted by
// the caller. The shadow is then told what was decided, so that both always hold and have reserved
// the same.
//
// The shadow never holds the deciding engine up. When it cannot follow, or fails, questions are
// skipped until it is given the state anew, which is at most every ten seconds.
//
// What a batch does is shown to the shadow when it is committed. As thread-safe as the deciding
// engine: not.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "libs/graph/engine.h"
#include "libs/graph/resource_graph.h"

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace fluxqueue::fluxion {

// How the shadow's answer to a match compares.
enum class Comparison {
  kEqual,
  kOutcome,    // allocated, reserved, busy, unsatisfiable: it says another, or another time
  kPlacement,  // now, but on other nodes
  kSkipped,    // it was not asked
};

struct ShadowOptions {
  // A shadow without nodes. `failed` is called on the shadow's thread when it cannot answer any
  // more; `abandoned` says that nobody waits for it any longer.
  std::function<absl::StatusOr<std::unique_ptr<graph::Engine>>(
      std::function<void(const absl::Status&)> failed, std::function<bool()> abandoned)>
      make;
  // Called on either thread.
  std::function<void(Comparison result, size_t answers)> compared;
  std::string pool;  // for the log
};

class ShadowEngine final : public graph::Engine {
 public:
  ShadowEngine(std::unique_ptr<graph::Engine> decides, ShadowOptions options);
  ~ShadowEngine() override;
  ShadowEngine(const ShadowEngine&) = delete;
  ShadowEngine& operator=(const ShadowEngine&) = delete;

  absl::Status SetPolicy(std::string_view policy) override;
  absl::Status SetLevels(const std::vector<std::string>& levels) override;
  void Expect(const graph::Jobspec& jobspec, int64_t jobs) override;
  void SetForecast(std::optional<graph::Workload> forecast) override;
  void HeedPreferences(bool heeds) override;
  absl::Status AddNode(graph::NodeSpec node) override;
  absl::StatusOr<graph::NodeChange> UpdateNode(graph::NodeSpec node) override;
  absl::StatusOr<std::vector<graph::AllocationKey>> RemoveNode(std::string_view name) override;
  graph::Outcome Match(const graph::MatchRequest& request) override;
  // The shadow is told what was decided, and not asked.
  graph::Outcome Grow(const graph::MatchRequest& request) override;
  bool Reserve(const graph::AllocationKey& key, const graph::Placement& placement) override;
  void DropReservation(const graph::AllocationKey& key) override;
  void DropReservations() override;
  void SetClosures(std::vector<graph::Closure> closures) override;
  std::vector<graph::AllocationKey> Overran(int64_t now_s) const override {
    return decides_->Overran(now_s);
  }
  bool Release(const graph::AllocationKey& key) override;
  std::vector<uint32_t> ReleaseSlots(const graph::AllocationKey& key,
                                     const std::vector<uint32_t>& slots) override;
  absl::Status Restore(const graph::AllocationKey& key, const graph::Placement& placement) override;
  void Checkpoint() override;
  void Commit() override;
  void Rollback() override;

  graph::Explanation Explain(const graph::Jobspec& jobspec, graph::Wording wording) const override {
    return decides_->Explain(jobspec, wording);
  }
  std::vector<graph::Holder> HoldersOf(const graph::Jobspec& jobspec,
                                       const graph::Explanation& why) const override {
    return decides_->HoldersOf(jobspec, why);
  }
  const graph::Placement* Find(const graph::AllocationKey& key) const override {
    return decides_->Find(key);
  }
  std::vector<graph::AllocationKey> Keys() const override { return decides_->Keys(); }
  std::vector<graph::AllocationKey> KeysOf(std::string_view job_id) const override {
    return decides_->KeysOf(job_id);
  }
  std::vector<graph::NodeSpec> Nodes() const override { return decides_->Nodes(); }
  uint64_t inventory_version() const override { return decides_->inventory_version(); }
  uint32_t nodes() const override { return decides_->nodes(); }
  uint32_t nodes_up() const override { return decides_->nodes_up(); }
  uint64_t allocations() const override { return decides_->allocations(); }
  std::vector<graph::ResourceUsage> Usage() const override { return decides_->Usage(); }
  std::vector<graph::NodeUsage> UsageByNode() const override { return decides_->UsageByNode(); }
  uint64_t Fingerprint() const override { return decides_->Fingerprint(); }

  // Waits until the shadow has been asked all that it is to be asked. For tests and benchmarks.
  void Drain();

 private:
  // Done to the shadow, on its thread.
  struct Step {
    std::function<absl::Status()> run;
    bool asks = false;
  };
  struct Asked;

  void Show(Step step);
  void ShowClosures();
  void ShowReservations();
  void Pass(std::vector<Step> steps);
  // All that the deciding engine has, for a new shadow.
  Step Anew();
  absl::Status Ask(const Asked& asked);
  Comparison Compare(const graph::Outcome& outcome, const Asked& asked) const;
  std::shared_ptr<const graph::Jobspec> Kept(const graph::Jobspec& jobspec);
  void Work();
  void Run(const std::vector<Step>& steps);
  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return queue_.empty() && !working_; }
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !queue_.empty() || stop_; }

  const ShadowOptions options_;
  std::unique_ptr<graph::Engine> decides_;
  std::string policy_ = "first";
  std::vector<std::string> levels_;
  bool heeds_preferences_ = true;
  std::vector<graph::Closure> closures_;
  // By shape and what they prefer.
  std::unordered_map<std::string,
                     std::shared_ptr<const graph::Jobspec>,
                     graph::TextHash,
                     std::equal_to<>>
      jobspecs_;
  bool recording_ = false;
  std::map<graph::AllocationKey, graph::Placement> reserved_;
  std::vector<Step> batch_;
  std::chrono::steady_clock::time_point begun_;  // the last time that it was given all

  mutable absl::Mutex mutex_;
  std::vector<Step> queue_ ABSL_GUARDED_BY(mutex_);
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  // It does not hold what was decided: nothing is asked until it was given all anew.
  bool behind_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  // The shadow's thread only.
  std::unique_ptr<graph::Engine> shadow_;
  absl::Status failed_;

  std::atomic<bool> stopping_ = false;
  std::jthread thread_;
};

}  // namespace fluxqueue::fluxion
