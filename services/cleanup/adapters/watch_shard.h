// Cleanup's side of the delivery loop: while the lease is ours, three watches (nodes, pods, held
// Jobs) feed an Observer, and what it has to say goes into the pools' logs.
//
// Load starts the watches and Drop stops them, so a replica without the lease costs nothing.
// Repeats: a batch that was rolled back is collected again; events whose proofs could not be read
// stay in the inbox. The sweeper (sweeper.h) hands in rows
// and confirmations through the same inbox.
//
// A pod or Job that cannot be handled is left out (libs/delivery/quarantine.h): the pod counts as
// foreign use of its node if its size can be read, the Job is there, and neither ends before it is
// handled. One that cannot even be read goes there, too, and stays in the picture as it was. A node
// is never left out, since its jobs would count as lost: a node that cannot be handled ends Run, as
// does what fails in the picture as a whole.
//
// Confined to the loop's thread, save Post… and TakeSuspects, which are thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/mailbox.h"
#include "libs/delivery/handler.h"
#include "libs/delivery/quarantine.h"
#include "libs/kubernetes/cluster.h"
#include "libs/kubernetes/informer.h"
#include "libs/postgres/store.h"
#include "libs/tracing/tracer.h"
#include "services/cleanup/adapters/lookups.h"
#include "services/cleanup/config.h"
#include "services/cleanup/domain/observer.h"
#include "services/cleanup/domain/sweep.h"
#include "services/cleanup/metrics.h"

namespace fluxqueue::cleanup {

class WatchShard final : public delivery::ShardHandler {
 public:
  // Of the text of what is seen. As values objects take up to three times as much.
  static constexpr size_t kMostInboxBytes = size_t{32} << 20;
  // Of items, in one turn.
  static constexpr size_t kMostTaken = 1'000;

  // `wake` is called after something was posted. References must outlive the shard.
  WatchShard(const CleanupConfig& config,
             kubernetes::Cluster& cluster,
             std::unique_ptr<postgres::Store> store,
             CleanupMetrics& metrics,
             const Clock& clock,
             tracing::Tracer& tracer,
             delivery::Quarantine& quarantine,
             std::function<void()> wake);
  ~WatchShard() override;

  absl::Status Load(pqxx::transaction_base& tx) override;
  void Drop() override;
  bool HasWork() const override;
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override;
  absl::Status Poll(delivery::Outbox& outbox) override;
  bool HasRows() const override { return false; }
  absl::Status Write(pqxx::transaction_base&) override { return absl::OkStatus(); }
  void Commit() override;
  void Rollback() override;

  // OK when the lease is not ours, or the picture is complete and the watches stand.
  absl::Status Ready() const;

  // For metrics.
  const auto& mailbox() const { return inbox_; }

  // For the sweeper.
  void PostNodes(std::vector<HeardNode> nodes);
  void PostLiveJobs(std::vector<LiveJob> live);
  // What Compare found in the live jobs posted last; nullopt: not compared yet.
  std::optional<Suspects> TakeSuspects();
  void PostGone(std::string job_id);
  void PostOrphan(std::string pod_uid);

 private:
  struct ConfirmedGone {
    std::string job_id;
  };
  struct ConfirmedOrphan {
    std::string uid;
  };
  using Node = kubernetes::Seen<kubernetes::Node>;
  using Pod = kubernetes::Seen<kubernetes::Pod>;
  using Job = kubernetes::Seen<kubernetes::Job>;
  using Item = std::variant<Node,
                            Pod,
                            Job,
                            kubernetes::Gone,
                            kubernetes::Synced,
                            kubernetes::Unread,
                            std::vector<HeardNode>,
                            std::vector<LiveJob>,
                            ConfirmedGone,
                            ConfirmedOrphan>;

  void StartWatches();
  // The rows of the pods among the items that need one; with rows of live jobs also of all pods
  // that lacked theirs before.
  absl::StatusOr<Proofs> FindProofsFor(std::span<const Item> items);
  absl::Status Handle(std::span<const Item> items);
  // What was said of the jobs and is not in their rows is said again.
  void SayAgain(const std::vector<LiveJob>& live);
  static std::optional<delivery::ObjectRef> RefOf(const Item& item);
  // False: the item is left out.
  absl::StatusOr<bool> Admit(const Item& item);
  void Forget(const kubernetes::Gone& gone);
  void Apply(const Item& item, const Proofs& proofs);
  void LeaveOut(const Item& item);
  absl::Status Say(const Said& said, delivery::Outbox& outbox);
  Millis Now() const;

  const CleanupConfig& config_;
  kubernetes::Cluster& cluster_;
  CleanupMetrics& metrics_;
  tracing::Tracer& tracer_;
  delivery::Quarantine& quarantine_;
  const Clock& clock_;
  const std::unique_ptr<postgres::Store> store_;
  PoolDirectory directory_;
  std::unique_ptr<Observer> observer_;  // null: the lease is not ours
  Mailbox<Item> inbox_{"cluster", kMostInboxBytes};
  std::vector<Item> taken_;                 // from it
  size_t handled_ = 0;                      // of these
  std::set<std::string_view> synced_;       // resources
  std::vector<events::v1::Envelope> said_;  // of the batch under way, for metrics and traces

  mutable std::mutex mutex_;
  std::optional<Suspects> suspects_;  // guarded by mutex_, as all below
  bool complete_ = false;

  kubernetes::Informers informers_;  // last: they fill the inbox
};

}  // namespace fluxqueue::cleanup
