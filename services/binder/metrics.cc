#include "services/binder/metrics.h"

#include <string>
#include <string_view>
#include <utility>

namespace fluxqueue::binder {
namespace {

constexpr std::array<std::string_view, 5> kOutcomeNames = {
    "done", "conflict", "gone", "retry", "refused"};

metrics::Counter CallCounter(metrics::Registry& registry, size_t kind, size_t outcome) {
  return registry.MakeCounter("fluxqueue_bind_calls_total",
                              "What was asked of the API server, and what came of it.",
                              {{"call", std::string(Name(static_cast<Call::Kind>(kind)))},
                               {"outcome", std::string(kOutcomeNames[outcome])}});
}

template <size_t... kOutcome>
std::array<metrics::Counter, sizeof...(kOutcome)> CallCounters(metrics::Registry& registry,
                                                               size_t kind,
                                                               std::index_sequence<kOutcome...>) {
  return {CallCounter(registry, kind, kOutcome)...};
}

template <size_t kOutcomes, size_t... kKind>
std::array<std::array<metrics::Counter, kOutcomes>, sizeof...(kKind)> AllCallCounters(
    metrics::Registry& registry, std::index_sequence<kKind...>) {
  return {CallCounters(registry, kKind, std::make_index_sequence<kOutcomes>())...};
}

template <size_t... kKind>
std::array<metrics::Latency, sizeof...(kKind)> CallLatencies(metrics::Registry& registry,
                                                             std::index_sequence<kKind...>) {
  return {registry.MakeLatency("fluxqueue_bind_call_seconds",
                               "Time of one such call.",
                               {{"call", std::string(Name(static_cast<Call::Kind>(kKind)))}})...};
}

}  // namespace

BinderMetrics::BinderMetrics(metrics::Registry& registry)
    : bind_seconds_(registry.MakeLatency(
          "fluxqueue_bind_seconds",
          "From an allocation's arrival at the binder to its last pod bound.")),
      failures_(registry.MakeCounters(
          "fluxqueue_bind_failures_total", "Attempts that could not be bound.", {"reason"})),
      stop_seconds_(registry.MakeLatency("fluxqueue_stop_seconds",
                                         "From a stop's arrival at the binder until nothing of the "
                                         "attempt runs or can start.")),
      calls_(AllCallCounters<kOutcomes>(registry, std::make_index_sequence<kKinds>())),
      call_seconds_(CallLatencies(registry, std::make_index_sequence<kKinds>())),
      calls_waiting_(registry.MakeGauge("fluxqueue_bind_calls_waiting",
                                        "Calls that no worker has taken up yet.")),
      jobs_(registry.MakeGauge("fluxqueue_binder_jobs", "Jobs that hold an allocation.")),
      pods_(registry.MakeGauge("fluxqueue_binder_pods", "Held pods in view.")),
      answers_dropped_(
          registry.MakeCounter("fluxqueue_bind_answers_dropped_total",
                               "Answers of calls for jobs that had moved on meanwhile.")),
      unreadable_objects_(registry.MakeCounter("fluxqueue_unreadable_objects_total",
                                               "Objects of the API server that could not be read.",
                                               {{"component", "binder"}})),
      bypassing_(registry.MakeGauge(
          "fluxqueue_bypassing_pods",
          "Pods that run in managed namespaces and have not been through the queue.")),
      bypass_stops_(registry.MakeCounter("fluxqueue_bypass_stops_total",
                                         "Of these, deletions in strict namespaces.")) {}

void BinderMetrics::Said(const Saying& saying) {
  switch (saying.envelope.event_case()) {
    case events::v1::Envelope::kJobBound:
      bind_seconds_.Observe(saying.after);
      break;
    case events::v1::Envelope::kBindFailed:
      failures_.With({{"reason", saying.envelope.bind_failed().reason()}}).Add();
      break;
    case events::v1::Envelope::kJobStopped:
      stop_seconds_.Observe(saying.after);
      break;
    default:
      break;
  }
}

void BinderMetrics::CallMade(const CallResult& result, std::chrono::duration<double> latency) {
  const auto kind = static_cast<size_t>(result.call.kind);
  calls_[kind][static_cast<size_t>(result.outcome)].Add();
  call_seconds_[kind].Observe(latency);
}

void BinderMetrics::Following(size_t jobs, size_t pods) {
  jobs_.Set(static_cast<double>(jobs));
  pods_.Set(static_cast<double>(pods));
}

void BinderMetrics::AnswersDropped(uint64_t in_all) {
  answers_dropped_.Add(static_cast<double>(in_all) - answers_dropped_.Value());
}

}  // namespace fluxqueue::binder
