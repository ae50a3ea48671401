#include "libs/kubernetes/slot_proof.h"

#include <fmt/format.h>

namespace fluxqueue::kubernetes {

std::string SlotProofText(std::string_view pod_uid,
                          std::string_view space,
                          std::string_view job_id,
                          const SlotName& slot,
                          std::string_view node) {
  // No signature of anything else begins so.
  std::string text = "fluxqueue slot 1\n";
  const std::string slot_name = FormatSlotName(slot);
  for (const std::string_view field : {pod_uid, space, job_id, std::string_view(slot_name), node}) {
    text += fmt::format("{} {}\n", field.size(), field);
  }
  return text;
}

}  // namespace fluxqueue::kubernetes
