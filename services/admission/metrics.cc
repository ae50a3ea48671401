#include "services/admission/metrics.h"

namespace fluxqueue::admission {
namespace {

constexpr const char* kReviews = "fluxqueue_admission_reviews_total";
constexpr const char* kReviewsHelp = "Objects that the webhook judged, by verdict.";
constexpr const char* kMessages = "fluxqueue_admission_messages_total";
constexpr const char* kMessagesHelp = "Messages committed to the pools' logs, by type.";

}  // namespace

AdmissionMetrics::AdmissionMetrics(metrics::Registry& registry)
    : left_(registry.MakeCounter(kReviews, kReviewsHelp, {{"verdict", "left"}})),
      held_(registry.MakeCounter(kReviews, kReviewsHelp, {{"verdict", "held"}})),
      refused_(registry.MakeCounter(kReviews, kReviewsHelp, {{"verdict", "refused"}})),
      unreadable_(registry.MakeCounter("fluxqueue_admission_unreadable_reviews_total",
                                       "Requests to the webhook that were no AdmissionReview.")),
      second_looks_(registry.MakeCounter("fluxqueue_admission_second_looks_total",
                                         "Things looked up that the watches did not have.")),
      webhook_seconds_(registry.MakeLatency("fluxqueue_admission_review_seconds",
                                            "From the webhook's request to its answer.")),
      submitted_said_(registry.MakeCounter(kMessages, kMessagesHelp, {{"type", "job_submitted"}})),
      updated_said_(registry.MakeCounter(kMessages, kMessagesHelp, {{"type", "job_updated"}})),
      withdrawn_said_(registry.MakeCounter(kMessages, kMessagesHelp, {{"type", "job_withdrawn"}})),
      configured_said_(registry.MakeCounter(kMessages, kMessagesHelp, {{"type", "configured"}})),
      events_(registry.MakeCounter("fluxqueue_admission_watch_events_total",
                                   "Events of held workloads that were handled.")),
      unreadable_objects_(registry.MakeCounter("fluxqueue_admission_unreadable_objects_total",
                                               "Watched objects that could not be read.")),
      refusals_(registry.MakeCounter("fluxqueue_admission_refusals_total",
                                     "Held workloads that could not be submitted or updated.")),
      sweeps_(registry.MakeCounter("fluxqueue_admission_sweeps_total",
                                   "Full lists compared with the rows.")),
      workloads_(registry.MakeGauge("fluxqueue_admission_workloads",
                                    "Workloads submitted that have not ended.")),
      workloads_refused_(
          registry.MakeGauge("fluxqueue_admission_workloads_refused",
                             "Held workloads that wait because they were refused.")) {}

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
