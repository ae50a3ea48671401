#include "tools/fluxqueue/snapshot_store.h"

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/base/status_macros.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/views.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::cli {
namespace {

using postgres::Exec;
using postgres::Statement;

constexpr Statement kJobs{
    "cli_jobs",
    "SELECT job_id, pool, namespace, name, kind, state, version, attempt, slots, "
    "placement_hash, most_slots, "
    "CASE WHEN state IN ('Bound', 'Running', 'Stopping') THEN row ELSE '' END FROM queue.jobs"};
constexpr Statement kEvents{"cli_events",
                            "SELECT job_id, count(*), min(version), max(version), "
                            "  coalesce(min(version) FILTER (WHERE state IN ('Succeeded', "
                            "'Failed', 'Cancelled') OR (state = 'Rejected' AND "
                            "next NOT IN ('Submitted', 'Pending'))), 0), "
                            "  (array_agg(state ORDER BY version DESC))[1] "
                            "FROM (SELECT *, lead(state, 1, '') OVER "
                            "  (PARTITION BY job_id ORDER BY version) AS next "
                            "  FROM queue.job_events) AS e GROUP BY job_id"};
constexpr Statement kAllocations{"cli_allocations",
                                 "SELECT job_id, attempt, part, pool, placement, placement_hash, "
                                 "released FROM matcher.allocations"};
constexpr Statement kNodes{
    "cli_nodes", "SELECT pool, node, present FROM matcher.graph_nodes ORDER BY pool, ordinal"};
constexpr Statement kSpecs{"cli_specs", "SELECT job_id, part, revision, slots FROM matcher.specs"};
constexpr Statement kSlots{
    "cli_slots",
    "SELECT job_id, attempt, part, slot, node, pod_uid, namespace || '/' || pod_name, "
    "state, bound_once FROM binder.slots"};
constexpr Statement kWorkloads{"cli_workloads",
                               "SELECT job_id, kind, namespace, name FROM admission.workloads "
                               "WHERE submitted AND NOT withdrawn"};

std::string Bytes(const pqxx::field& field) {
  return pqxx::binarystring(field).str();
}
std::string Text(const pqxx::field& field) {
  return field.as<std::string>();
}
uint32_t Small(const pqxx::field& field) {
  return static_cast<uint32_t>(field.as<int64_t>());
}
uint64_t Large(const pqxx::field& field) {
  return static_cast<uint64_t>(field.as<int64_t>());
}

void ReadJobs(pqxx::transaction_base& tx, verify::Snapshot* snapshot) {
  for (const pqxx::row& row : Exec(tx, kJobs)) {
    queue::v1::JobRow stored;
    stored.ParseFromString(Bytes(row[11]));
    verify::JobRow job{.id = Text(row[0]),
                       .pool = Text(row[1]),
                       .space = Text(row[2]),
                       .name = Text(row[3]),
                       .kind = Text(row[4]),
                       .state = Text(row[5]),
                       .version = Large(row[6]),
                       .attempt = Small(row[7]),
                       .slots = Small(row[8]),
                       .most_slots = Small(row[10]),
                       .held_slots = stored.held_slots(),
                       .placement_hash = Large(row[9])};
    std::string id = job.id;
    snapshot->jobs.emplace(std::move(id), std::move(job));
  }
  for (const pqxx::row& row : Exec(tx, kEvents)) {
    snapshot->events[Text(row[0])] = {.count = Large(row[1]),
                                      .first = Large(row[2]),
                                      .last = Large(row[3]),
                                      .ended = Large(row[4]),
                                      .last_state = Text(row[5])};
  }
}

void ReadNodes(pqxx::transaction_base& tx, verify::Snapshot* snapshot) {
  for (const pqxx::row& row : Exec(tx, kNodes)) {
    verify::NodeRow& node = snapshot->nodes.emplace_back();
    node.pool = Text(row[0]);
    node.node.ParseFromString(Bytes(row[1]));
    node.present = row[2].as<bool>();
  }
}

void ReadAllocations(pqxx::transaction_base& tx, verify::Snapshot* snapshot) {
  for (const pqxx::row& row : Exec(tx, kAllocations)) {
    verify::AllocationRow allocation;
    allocation.key = {Text(row[0]), Small(row[1]), Small(row[2])};
    allocation.pool = Text(row[3]);
    allocation.decodes = allocation.placement.ParseFromString(Bytes(row[4]));
    allocation.placement_hash = Large(row[5]);
    allocation.released = row[6].as<bool>();
    snapshot->allocations.emplace(allocation.key, allocation);
  }
}

void ReadTheRest(pqxx::transaction_base& tx, verify::Snapshot* snapshot) {
  for (const pqxx::row& row : Exec(tx, kSpecs)) {
    snapshot->specs.push_back({Text(row[0]), Small(row[1]), Small(row[2]), Small(row[3])});
  }
  for (const pqxx::row& row : Exec(tx, kSlots)) {
    snapshot->slots.push_back({.key = {Text(row[0]), Small(row[1]), Small(row[2])},
                               .slot = Small(row[3]),
                               .node = Text(row[4]),
                               .pod_uid = Text(row[5]),
                               .pod = Text(row[6]),
                               .state = Text(row[7]),
                               .bound_once = row[8].as<bool>()});
  }
  for (const pqxx::row& row : Exec(tx, kWorkloads)) {
    snapshot->workloads.push_back({Text(row[0]), Text(row[1]), Text(row[2]), Text(row[3])});
  }
}

void OneMoment(pqxx::transaction_base& tx) {
  tx.exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
}

std::string Annotation(const kubernetes::ObjectMeta& meta, std::string_view key) {
  const auto found = meta.annotations.find(key);
  return found == meta.annotations.end() ? "" : found->second;
}

void AddPod(const kubernetes::Pod& pod, verify::Cluster* cluster) {
  verify::PodView view{.uid = pod.meta.uid,
                       .name = pod.meta.namespace_name + "/" + pod.meta.name,
                       .node = pod.spec.node_name,
                       .job_id = Annotation(pod.meta, kubernetes::kJobIdAnnotation),
                       .slot = std::nullopt,
                       .ended = pod.Ended(),
                       .deleting = pod.meta.deleted_ms != 0};
  const auto slot =
      kubernetes::ParseSlotName(Annotation(pod.meta, kubernetes::kAllocationAnnotation));
  if (slot.ok()) view.slot = *slot;
  if (!kubernetes::WaitsForItsJob(pod)) cluster->objects[pod.meta.uid] = {view.name, view.ended};
  cluster->pods.push_back(std::move(view));
}

}  // namespace

postgres::Options PostgresOptions(const std::string& dsn) {
  return {.dsn = dsn, .application = "fluxqueue", .schema = "public"};
}

absl::Status ReadRows(postgres::Connection& connection, verify::Snapshot* snapshot) {
  return connection.Transact([&](pqxx::transaction_base& tx) {
    OneMoment(tx);
    ReadJobs(tx, snapshot);
    ReadAllocations(tx, snapshot);
    ReadNodes(tx, snapshot);
    ReadTheRest(tx, snapshot);
    return absl::OkStatus();
  });
}

absl::Status ReadGraph(postgres::Connection& connection, verify::Snapshot* snapshot) {
  return connection.Transact([&](pqxx::transaction_base& tx) {
    OneMoment(tx);
    ReadJobs(tx, snapshot);
    ReadAllocations(tx, snapshot);
    ReadNodes(tx, snapshot);
    return absl::OkStatus();
  });
}

absl::StatusOr<verify::Cluster> ReadCluster(const std::string& kubeconfig) {
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig config, kubernetes::LoadClusterConfig(kubeconfig));
  kubernetes::Client client(std::move(config));
  const kubernetes::Selector held{.labels = std::string(kubernetes::kHeldLabel)};
  verify::Cluster cluster;
  RETURN_IF_ERROR(client
                      .List(kubernetes::kPods,
                            held,
                            [&](std::string_view json) -> absl::Status {
                              ASSIGN_OR_RETURN(const kubernetes::Pod pod,
                                               kubernetes::ParsePod(json));
                              AddPod(pod, &cluster);
                              return absl::OkStatus();
                            })
                      .status());
  RETURN_IF_ERROR(client
                      .List(kubernetes::kJobs,
                            held,
                            [&](std::string_view json) -> absl::Status {
                              ASSIGN_OR_RETURN(const kubernetes::Job job,
                                               kubernetes::ParseJob(json));
                              cluster.objects[job.meta.uid] = {
                                  job.meta.namespace_name + "/" + job.meta.name, job.Ended()};
                              return absl::OkStatus();
                            })
                      .status());
  RETURN_IF_ERROR(client
                      .List(kubernetes::kNodes,
                            {},
                            [&](std::string_view json) -> absl::Status {
                              ASSIGN_OR_RETURN(const kubernetes::Node node,
                                               kubernetes::ParseNode(json));
                              cluster.nodes[node.meta.name] = node.ready;
                              return absl::OkStatus();
                            })
                      .status());
  return cluster;
}

}  // namespace fluxqueue::cli
