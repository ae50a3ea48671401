// The tables of the schema `admission`. Set-based: one statement for each kind of change in a
// batch. Lets libpqxx's exceptions out, as the delivery loop wants it (libs/delivery/handler.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "services/admission/domain/catalog.h"
#include "services/admission/domain/tracker.h"
#include "services/admission/domain/unheard.h"

namespace fluxqueue::admission {

struct AdmissionRows {
  std::vector<PoolRow> pools;
  std::vector<QueueRow> queues;
  std::vector<WindowRow> windows;
  std::vector<WorkloadRow> workloads;
};

// Throws pqxx::conversion_error on a value that this version cannot read; names it.
AdmissionRows LoadRows(pqxx::transaction_base& tx);

void WriteRows(pqxx::transaction_base& tx,
               const CatalogChanges& catalog,
               const TrackerChanges& workloads);

// Of all workloads.
UsageBySpace LoadUsage(pqxx::transaction_base& tx);

// Of these jobs those that the queue has as Rejected, or as waiting, by id.
std::map<std::string, UnplacedJob> FindUnplaced(pqxx::transaction_base& tx,
                                                const std::vector<std::string>& job_ids);

// The workloads beside what queue and matcher have of them.
struct Neighbours {
  Comparison jobs;      // submitted, and no job of the queue
  Comparison jobspecs;  // of jobs that wait, and that the matcher has none of
};
// Where the pages of the next comparison begin.
struct NeighbourPages {
  std::string jobs{};
  std::string jobspecs{};
};
// Of each a page of 2,000 workloads; notes which workloads the queue has jobs of. Unset: one of
// them is of an older release, or lets us not read.
std::optional<Neighbours> CompareNeighbours(pqxx::transaction_base& tx,
                                            const NeighbourPages& pages);

}  // namespace fluxqueue::admission
