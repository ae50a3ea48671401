// A tracker for tests.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/admission/domain/objects_for_test.h"
#include "services/admission/domain/tracker.h"

namespace fluxqueue::admission {

// The tracker over a cluster of two queues, with the rows that a database would hold.
class TrackerTest : public ::testing::Test {
 protected:
  TrackerTest() {
    kubernetes::FluxQueue other;
    other.meta.name = "elsewhere";
    other.pool = "gpu";
    Upsert(other);
  }

  // The FluxQueue is there, and the catalog knows it.
  void Upsert(const kubernetes::FluxQueue& queue) {
    facts_.Upsert(queue);
    std::vector<events::v1::Envelope> messages;
    std::vector<std::string> warnings;
    catalog_.Reconcile(facts_.queues(), &messages, &warnings);
    catalog_.Commit();
  }

  static nlohmann::json Held(nlohmann::json object) {
    Review review = ReviewOf(object);
    review.user = "kim";
    const Verdict verdict = Decide(review, SmallCluster(), {});
    EXPECT_EQ(verdict.kind, Verdict::Kind::kHold) << verdict.message;
    return verdict.patch.empty() ? object : object.patch(nlohmann::json::parse(verdict.patch));
  }

  static nlohmann::json PodOf(const nlohmann::json& job, const char* cpu = "1") {
    nlohmann::json pod = PodJson("p1");
    pod["metadata"]["uid"] = "uid-p1";
    pod["metadata"]["labels"] = {{"fluxqueue.io/held", "direct"}};
    pod["metadata"]["ownerReferences"] = nlohmann::json::array({{{"apiVersion", "batch/v1"},
                                                                 {"kind", "Job"},
                                                                 {"name", job["metadata"]["name"]},
                                                                 {"uid", job["metadata"]["uid"]},
                                                                 {"controller", true}}});
    pod["spec"]["schedulerName"] = "fluxqueue";
    pod["spec"]["containers"][0]["resources"]["requests"] = {{"cpu", cpu}, {"memory", "1Gi"}};
    return pod;
  }

  // As adapters/sketch_reader.h reads it.
  static Observation Seen(const nlohmann::json& object) {
    const nlohmann::json& meta = object["metadata"];
    const nlohmann::json status = object.value("status", nlohmann::json::object());
    Observation seen;
    Sketch& sketch = seen.sketch;
    sketch.kind = object["kind"] == "Job" ? WorkloadKind::kJob : WorkloadKind::kPod;
    sketch.space = meta["namespace"];
    sketch.name = meta["name"];
    sketch.uid = meta["uid"];
    sketch.resource_version = meta["resourceVersion"];
    for (const nlohmann::json& owner : meta.value("ownerReferences", nlohmann::json::array())) {
      const bool of_a_job = sketch.kind == WorkloadKind::kPod && owner["kind"] == "Job";
      if (of_a_job) sketch.controller_job = owner["uid"];
    }
    const nlohmann::json notes = meta.value("annotations", nlohmann::json::object());
    if (notes.contains("fluxqueue.io/group")) {
      sketch.group = sketch.space + "/" + notes["fluxqueue.io/group"].get<std::string>() + "/" +
                     notes.value("fluxqueue.io/user", "");
    }
    sketch.in_place = sketch.controller_job.empty() && notes.contains("fluxqueue.io/place-of");
    const nlohmann::json labels = meta.value("labels", nlohmann::json::object());
    sketch.held = labels.contains("fluxqueue.io/held");
    const std::string phase = status.value("phase", "");
    sketch.ended = phase == "Succeeded" || phase == "Failed" || status.contains("conditions");
    sketch.going = meta.contains("deletionTimestamp");
    sketch.bound = object["spec"].contains("nodeName");
    sketch.digest = 1 + std::hash<std::string>()(
                            labels.dump() + meta.value("annotations", nlohmann::json()).dump() +
                            meta.value("generation", nlohmann::json()).dump());
    seen.object = object.dump();
    return seen;
  }

  // Observes and commits, and keeps the rows.
  TrackerOutputs Observe(const nlohmann::json& object, uint64_t look = 0) {
    TrackerOutputs out;
    Observation seen = Seen(object);
    seen.look = look;
    tracker_.Observe(seen, facts_, &out);
    Commit();
    return out;
  }

  TrackerOutputs Gone(const std::string& uid) {
    TrackerOutputs out;
    tracker_.Gone(uid, &out);
    Commit();
    return out;
  }

  TrackerOutputs Learn(const std::string& uid, const std::optional<UnplacedJob>& unplaced) {
    TrackerOutputs out;
    tracker_.Learn(uid, unplaced, &out);
    Commit();
    return out;
  }

  TrackerOutputs HandInLost(const std::vector<std::string>& uids) {
    TrackerOutputs out;
    tracker_.HandInLost(uids, &out);
    Commit();
    return out;
  }

  TrackerOutputs LookAgain() {
    TrackerOutputs out;
    tracker_.LookAgain(&out);
    return out;
  }

  void Commit() {
    const TrackerChanges changes = tracker_.Changes();
    for (const WorkloadRow& row : changes.upserts) rows_[row.uid] = row;
    for (const std::string& uid : changes.deletes) {
      EXPECT_EQ(rows_.erase(uid), 1) << uid;
    }
    tracker_.Commit();
  }

  void Restart() {
    std::vector<WorkloadRow> rows;
    for (const auto& [uid, row] : rows_) rows.push_back(row);
    tracker_.Restore(std::move(rows));
  }

  ClusterFacts facts_ = SmallCluster();
  Catalog catalog_{events::v1::PoolConfigured(), 12};
  static constexpr size_t kMostJobspec = 4'000;
  Tracker tracker_{catalog_, kMostJobspec};
  std::map<std::string, WorkloadRow> rows_;
};

inline nlohmann::json Annotated(nlohmann::json object, const char* key, const char* value) {
  object["metadata"]["annotations"][key] = value;
  return object;
}

}  // namespace fluxqueue::admission
