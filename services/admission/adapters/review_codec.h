// The wire format of an admission webhook: AdmissionReview of admission.k8s.io/v1, question and
// answer. Thread-safe; no effects. Here and not in domain/ because its JSON library throws.
#pragma once

#include <string>
#include <string_view>

#include "services/admission/domain/webhook.h"

#include "absl/status/statusor.h"

namespace fluxqueue::admission {

// InvalidArgument: not JSON (where), not an AdmissionReview of v1 (what it is instead), or without
// a request. What the review asks about is not judged here.
absl::StatusOr<Review> ParseReview(std::string_view body);

// The AdmissionReview that answers the question with this uid.
std::string FormatAnswer(std::string_view uid, const Verdict& verdict);

}  // namespace fluxqueue::admission
