// Places: slots of a pod's job for the pods that it makes once it runs, as the driver of a Spark
// application makes its executors. The job starts when there is room for all of them. The webhook
// records on the pod how many places it has, and on each pod that it makes whose place it may take;
// the policies keep both. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "libs/kubernetes/quantity.h"

namespace fluxqueue::kubernetes {

// Of a pod that has places, as Format() writes them.
inline constexpr std::string_view kPlacesAnnotation = "fluxqueue.io/places";
// Of a pod that takes one of them: the uid of the pod that has them, which is their job's.
inline constexpr std::string_view kPlaceOfAnnotation = "fluxqueue.io/place-of";

struct Places {
  uint32_t count = 0;  // at most kMaxGroupPods (group_table.h)
  Amounts requests;    // of one: cpu, memory and "pods"

  friend bool operator==(const Places&, const Places&) = default;
};

// "4 cpu=1500m,memory=1408Mi", and what it says. Unset: there are none.
std::string Format(const Places& places);
std::optional<Places> ParsePlaces(std::string_view record);

// The executors of a SparkApplication (sparkoperator.k8s.io/v1beta2), as Spark's driver will ask
// for them. Unset: none, or nothing that Spark takes.
//
//   how many   spec.executor.instances, or 1 (the operator's default)
//   cpu        spec.executor.coreRequest, a quantity; or spec.executor.cores; or 1
//   memory     spec.executor.memory, or 1g, and beside it spec.executor.memoryOverhead, or
//              max(384 MiB, factor × memory); in whole MiB
//   factor     spec.memoryOverheadFactor, or 0.1; of Python and R 0.4
//
// (Spark: docs/configuration.md, spark.executor.memoryOverhead and memoryOverheadFactor;
// docs/running-on-kubernetes.md, spark.kubernetes.memoryOverheadFactor and
// spark.kubernetes.executor.request.cores; BasicExecutorFeatureStep.scala. The operator:
// docs/api-docs.md, ExecutorSpec.)
std::optional<Places> SparkExecutors(const nlohmann::json& application);

}  // namespace fluxqueue::kubernetes
