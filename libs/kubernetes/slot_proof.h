// What the binder's proof of a slot is made of: the annotation fluxqueue.io/proof says whose a pod
// is where the row is lost. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "libs/kubernetes/labels.h"

namespace fluxqueue::kubernetes {

// The base64 of an HMAC-SHA256; what is longer is no proof.
inline constexpr size_t kProofBytes = 44;

// The text that is authenticated: this pod, on this node, has this slot of the job. The uid makes
// it worthless on any other pod. Each field counts with its length, so that no two slots have one
// text.
std::string SlotProofText(std::string_view pod_uid,
                          std::string_view space,
                          std::string_view job_id,
                          const SlotName& slot,
                          std::string_view node);

}  // namespace fluxqueue::kubernetes
