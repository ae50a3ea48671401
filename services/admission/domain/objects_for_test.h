// JSON of Kubernetes objects for admission's tests.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "services/admission/domain/cluster_facts.h"
#include "services/admission/domain/webhook.h"

namespace fluxqueue::admission {

// As the API server shows a Pod to its webhooks: defaulted, one container of 1500m and 3Gi.
inline nlohmann::json PodJson(const std::string& name = "p") {
  nlohmann::json pod = nlohmann::json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"namespace": "work", "uid": "uid-p", "resourceVersion": "7",
                 "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"schedulerName": "default-scheduler", "restartPolicy": "Never",
             "containers": [{"name": "c", "image": "i",
                             "resources": {"requests": {"cpu": "1500m", "memory": "3Gi"}}}]},
    "status": {"phase": "Pending"}})");
  pod["metadata"]["name"] = name;
  return pod;
}

// A Job of `parallelism` pods that are all needed.
inline nlohmann::json JobJson(const std::string& name = "j", int parallelism = 4) {
  nlohmann::json job = nlohmann::json::parse(R"({
    "apiVersion": "batch/v1", "kind": "Job",
    "metadata": {"namespace": "work", "uid": "uid-j", "resourceVersion": "9", "generation": 1,
                 "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"completionMode": "NonIndexed", "suspend": false, "backoffLimit": 6,
             "template": {"metadata": {"creationTimestamp": null}, "spec": {
               "schedulerName": "default-scheduler", "restartPolicy": "Never",
               "containers": [{"name": "c", "image": "i",
                               "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}}},
    "status": {}})");
  job["metadata"]["name"] = name;
  job["spec"]["parallelism"] = parallelism;
  job["spec"]["completions"] = parallelism;
  return job;
}

inline Review ReviewOf(const nlohmann::json& object) {
  const bool pod = object["kind"] == "Pod";
  Review review;
  review.uid = "review-1";
  review.operation = "CREATE";
  review.group = pod ? "" : "batch";
  review.resource = pod ? "pods" : "jobs";
  review.space = object["metadata"]["namespace"];
  review.object = object.dump();
  return review;
}

// Namespace "work" is managed, "free" is not; FluxQueues "default" and "night" (at most an hour).
inline ClusterFacts SmallCluster() {
  ClusterFacts facts;
  facts.Upsert(kubernetes::Namespace{"work", {{"fluxqueue.io/managed", "true"}}});
  facts.Upsert(kubernetes::Namespace{"free", {}});
  facts.Upsert(kubernetes::Namespace{"kube-system", {{"fluxqueue.io/managed", "true"}}});
  kubernetes::FluxQueue queue;
  queue.meta.name = "default";
  facts.Upsert(queue);
  queue.meta.name = "night";
  queue.max_duration_ms = 3'600'000;
  facts.Upsert(queue);
  facts.Upsert(kubernetes::PriorityClass{"urgent", 100, false});
  return facts;
}

// The object as the verdict makes it.
inline nlohmann::json Patched(const nlohmann::json& object, const Verdict& verdict) {
  return verdict.patch.empty() ? object : object.patch(nlohmann::json::parse(verdict.patch));
}

inline Verdict Judge(const nlohmann::json& object,
                     const ClusterFacts& facts = SmallCluster(),
                     const WebhookOptions& options = {}) {
  return Decide(ReviewOf(object), facts, options);
}

// A Job with the key fluxqueue.io/ignore-disruptions, as the API server shows it: with what it
// fills in.
inline nlohmann::json AsksToIgnoreDisruptions(const char* value = "true") {
  nlohmann::json job = JobJson();
  job["metadata"]["annotations"] = {{"fluxqueue.io/ignore-disruptions", value}};
  job["spec"]["podReplacementPolicy"] = "TerminatingOrFailed";
  return job;
}

}  // namespace fluxqueue::admission
