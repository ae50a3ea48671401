#include "services/admission/metrics.h"

namespace fluxqueue::admission {
namespace {

metrics::Counter Reviews(metrics::Registry& registry, const char* verdict) {
  return registry.MakeCounter("fluxqueue_webhook_reviews_total",
                              "Objects that the webhook judged; unreadable: the request was no "
                              "AdmissionReview.",
                              {{"verdict", verdict}});
}

metrics::Counter Messages(metrics::Registry& registry, const char* type) {
  return registry.MakeCounter("fluxqueue_messages_total",
                              "Messages committed to the pools' logs.",
                              {{"component", "admission"}, {"type", type}});
}

}  // namespace

AdmissionMetrics::AdmissionMetrics(metrics::Registry& registry)
    : left_(Reviews(registry, "left")),
      held_(Reviews(registry, "held")),
      refused_(Reviews(registry, "refused")),
      unreadable_(Reviews(registry, "unreadable")),
      second_looks_(registry.MakeCounter("fluxqueue_webhook_lookups_total",
                                         "Things looked up that the watches did not have.")),
      no_second_looks_(registry.MakeCounter(
          "fluxqueue_webhook_lookups_refused_total",
          "Reviews that did not wait for a second look, as too many waited for theirs.")),
      looks_waiting_(registry.MakeGauge("fluxqueue_webhook_lookups_waiting",
                                        "Reviews that wait for the look of another to end.")),
      turned_away_(registry.MakeCounters(
          "fluxqueue_webhook_refusals_total",
          "Connections and requests that the webhook's server turned away, by the bound.",
          {"reason"})),
      webhook_seconds_(registry.MakeLatency("fluxqueue_webhook_seconds",
                                            "From the webhook's request to its answer.")),
      submitted_said_(Messages(registry, "job_submitted")),
      updated_said_(Messages(registry, "job_updated")),
      withdrawn_said_(Messages(registry, "job_withdrawn")),
      configured_said_(Messages(registry, "configured")),
      events_(registry.MakeCounter("fluxqueue_workload_events_total",
                                   "Watch events of held workloads that were handled.")),
      unreadable_objects_(registry.MakeCounter("fluxqueue_unreadable_objects_total",
                                               "Objects of the API server that could not be read.",
                                               {{"component", "admission"}})),
      refusals_(registry.MakeCounter("fluxqueue_workload_refusals_total",
                                     "Held workloads that could not be submitted or updated.")),
      sweeps_(registry.MakeCounter("fluxqueue_sweeps_total",
                                   "Full lists of the cluster compared with the rows.",
                                   {{"component", "admission"}})),
      workloads_(registry.MakeGauge("fluxqueue_workloads",
                                    "Held workloads: submitted and not ended, or refused and "
                                    "waiting to be mended.",
                                    {{"state", "submitted"}})),
      workloads_refused_(registry.MakeGauge("fluxqueue_workloads",
                                            "Held workloads: submitted and not ended, or refused "
                                            "and waiting to be mended.",
                                            {{"state", "refused"}})) {}

void AdmissionMetrics::Judged(Verdict::Kind kind, std::chrono::duration<double> latency) {
  webhook_seconds_.Observe(latency);
  switch (kind) {
    case Verdict::Kind::kLeave:
      return left_.Add();
    case Verdict::Kind::kHold:
      return held_.Add();
    case Verdict::Kind::kRefuse:
      return refused_.Add();
  }
}

void AdmissionMetrics::Said(events::v1::Envelope::EventCase type) {
  switch (type) {
    case events::v1::Envelope::kJobSubmitted:
      return submitted_said_.Add();
    case events::v1::Envelope::kJobUpdated:
      return updated_said_.Add();
    case events::v1::Envelope::kJobWithdrawn:
      return withdrawn_said_.Add();
    default:
      return configured_said_.Add();
  }
}

void AdmissionMetrics::Workloads(size_t submitted, size_t refused) {
  workloads_.Set(static_cast<double>(submitted));
  workloads_refused_.Set(static_cast<double>(refused));
}

}  // namespace fluxqueue::admission
