// The pools, queues and windows that admission has configured: what was said in the logs, and which
// partition of the log each pool has. Pure; confined to one thread.
//
// A pool comes into being with the first FluxQueue that names it. Its partition is chosen then,
// once: the one with the fewest pools. A FluxQueue keeps the pool that it had when it was made. A
// FluxWindow may go to another: it is deleted there and set here.
//
// Changes are provisional until Commit(); Rollback() forgets them. Changes() is what to write.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/journaled.h"
#include "services/admission/domain/cluster_facts.h"

namespace fluxqueue::admission {

struct PoolRow {
  std::string pool;
  int partition = 0;
  std::string config;  // PoolConfigured, serialized

  friend bool operator==(const PoolRow&, const PoolRow&) = default;
};

struct QueueRow {
  std::string queue;
  std::string pool;
  std::string config;  // QueueConfigured, serialized

  friend bool operator==(const QueueRow&, const QueueRow&) = default;
};

struct WindowRow {
  std::string window;
  std::string pool;
  std::string config;  // WindowConfigured, serialized

  friend bool operator==(const WindowRow&, const WindowRow&) = default;
};

struct CatalogChanges {
  std::vector<PoolRow> pools;
  std::vector<QueueRow> queues;
  std::vector<std::string> deleted_queues;
  std::vector<WindowRow> windows;
  std::vector<std::string> deleted_windows;

  bool empty() const {
    return pools.empty() && queues.empty() && deleted_queues.empty() && windows.empty() &&
           deleted_windows.empty();
  }
};

class Catalog {
 public:
  // `config` is what every pool is configured with; `partitions` how many the topic has.
  Catalog(events::v1::PoolConfigured config, int partitions);

  void Restore(const std::vector<PoolRow>& pools,
               const std::vector<QueueRow>& queues,
               const std::vector<WindowRow>& windows);

  // Says what differs between the cluster and what was said; pools before their queues.
  // `warnings`: a sentence for each FluxQueue that asks for what cannot be.
  void Reconcile(const ClusterFacts::ByName<kubernetes::FluxQueue>& queues,
                 std::vector<events::v1::Envelope>* messages,
                 std::vector<std::string>* warnings);
  // The same of windows; behind the pools, as one whose pool is not known keeps nothing.
  // `warnings`: a sentence for each that cannot be set.
  void ReconcileWindows(const ClusterFacts::ByName<kubernetes::FluxWindow>& windows,
                        std::vector<events::v1::Envelope>* messages,
                        std::vector<std::string>* warnings);

  // All that was said and still holds, once more: who has heard it does nothing, by rules 14.
  void SayAgain(std::vector<events::v1::Envelope>* messages) const;

  // Null: there is no such queue.
  const std::string* PoolOf(std::string_view queue) const;
  // REQUIRES: the pool is known, as all are that PoolOf gives or a row names.
  int PartitionOf(std::string_view pool) const;

  CatalogChanges Changes() const;
  void Commit();
  void Rollback();

 private:
  void ConfigurePool(const std::string& pool, std::vector<events::v1::Envelope>* messages);
  void ConfigureQueue(const kubernetes::FluxQueue& queue,
                      std::vector<events::v1::Envelope>* messages,
                      std::vector<std::string>* warnings);
  // Why it cannot be set; empty: it can.
  std::string ProblemOf(const kubernetes::FluxWindow& window) const;
  int EmptiestPartition() const;

  const events::v1::PoolConfigured config_;
  const int partitions_;
  // What was said.
  Journaled<ClusterFacts::ByName<PoolRow>> pools_;
  Journaled<ClusterFacts::ByName<QueueRow>> queues_;
  Journaled<ClusterFacts::ByName<WindowRow>> windows_;
};

}  // namespace fluxqueue::admission
