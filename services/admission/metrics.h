// What admission counts. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/http/server.h"
#include "libs/metrics/metrics.h"
#include "services/admission/domain/webhook.h"

namespace fluxqueue::admission {

class AdmissionMetrics {
 public:
  explicit AdmissionMetrics(metrics::Registry& registry);

  void Judged(Verdict::Kind kind, std::chrono::duration<double> latency);
  void Unreadable() { unreadable_.Add(); }
  void SecondLook() { second_looks_.Add(); }
  // An answer that did not wait for a second look.
  void NoSecondLook() { no_second_looks_.Add(); }
  void SecondLooksWaiting(size_t count) { looks_waiting_.Set(static_cast<double>(count)); }
  void TurnedAway(http::Refusal refusal) {
    turned_away_.With({{"reason", std::string(http::RefusalName(refusal))}}).Add();
  }

  // A committed message of a type that admission sends.
  void Said(events::v1::Envelope::EventCase type);
  void Observed(size_t events) { events_.Add(static_cast<double>(events)); }
  void UnreadableObject() { unreadable_objects_.Add(); }
  void Refused(size_t refusals) { refusals_.Add(static_cast<double>(refusals)); }
  void Swept() { sweeps_.Add(); }
  void Workloads(size_t submitted, size_t refused);

 private:
  metrics::Counter left_;
  metrics::Counter held_;
  metrics::Counter refused_;
  metrics::Counter unreadable_;
  metrics::Counter second_looks_;
  metrics::Counter no_second_looks_;
  metrics::Gauge looks_waiting_;
  metrics::CounterFamily turned_away_;
  metrics::Latency webhook_seconds_;

  metrics::Counter submitted_said_;
  metrics::Counter updated_said_;
  metrics::Counter withdrawn_said_;
  metrics::Counter configured_said_;
  metrics::Counter events_;
  metrics::Counter unreadable_objects_;
  metrics::Counter refusals_;
  metrics::Counter sweeps_;
  metrics::Gauge workloads_;
  metrics::Gauge workloads_refused_;
};

}  // namespace fluxqueue::admission
