#include "services/admission/domain/workload_messages.h"

#include "libs/base/clock.h"
#include "libs/kubernetes/quantity.h"
#include "libs/kubernetes/submission.h"

#include "fmt/format.h"

namespace fluxqueue::admission {

using events::v1::Envelope;
using events::v1::JobSubmitted;
using events::v1::PartSpec;

// FNV-1a.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

uint64_t DemandHash(const kubernetes::PodDemand& demand,
                    const PartSpec& spec,
                    const kubernetes::Topology& topology) {
  const std::string least = spec.min_slots() == 0 ? "" : fmt::format("{}..", spec.min_slots());
  std::string requests = kubernetes::FormatAmounts(demand.requests);
  for (const kubernetes::PodSet& set : demand.sets) {
    requests += fmt::format("{} of {};", set.slots, kubernetes::FormatAmounts(set.requests));
  }
  return Hash(fmt::format("{}{}|{}|{}|{}{}",
                          least,
                          spec.slots(),
                          requests,
                          demand.constraint,
                          kubernetes::FormatTopology(topology),
                          demand.rules.rules));
}

std::optional<int64_t> DurationOf(const JobSubmitted& submission) {
  if (!submission.has_duration_ms()) return std::nullopt;
  return submission.duration_ms();
}

Envelope ForPool(const std::string& pool) {
  Envelope envelope;
  envelope.set_pool(pool);
  return envelope;
}

PartSpec NextSpec(const kubernetes::PodDemand& demand, WorkloadRow* row) {
  row->requests = demand.requests;
  ++row->revision;
  PartSpec spec;
  spec.set_revision(row->revision);
  spec.set_slots(row->slots);
  spec.set_min_slots(row->min_slots);
  spec.set_jobspec(kubernetes::MakeJobspec(
      demand, row->slots, Millis(row->duration_ms.value_or(0)), row->topology, row->min_slots));
  row->jobspec_bytes = static_cast<int64_t>(spec.jobspec().size());
  kubernetes::SetAmounts(demand, row->slots, &spec);
  return spec;
}

}  // namespace fluxqueue::admission
