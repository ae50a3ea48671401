#include "libs/matcher_core/specs.h"

#include "libs/base/status_macros.h"

namespace fluxqueue::matcher_core {

Spec MakeSpec(uint32_t revision, uint32_t slots, std::string text) {
  Spec spec;
  spec.revision = revision;
  spec.slots = slots;
  spec.text = std::move(text);
  absl::StatusOr<graph::Jobspec> parsed = graph::ParseJobspec(spec.text);
  if (!parsed.ok()) {
    spec.error = Message(parsed.status());
  } else if (parsed->slots != slots) {
    spec.error = fmt::format(
        "jobspec: asks for {} slots, and was submitted as one of {}", parsed->slots, slots);
  } else {
    spec.jobspec = std::make_shared<const graph::Jobspec>(*std::move(parsed));
  }
  return spec;
}

}  // namespace fluxqueue::matcher_core
