#include "services/admission/domain/review.h"

#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "services/admission/domain/sketch.h"

namespace fluxqueue::admission {

Verdict Refuse(const std::string& message) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kRefuse;
  verdict.message = Clean(message, kMostRefusalBytes);
  return verdict;
}

Verdict Refuse(const absl::Status& status) {
  return Refuse(Message(status));
}

}  // namespace fluxqueue::admission
