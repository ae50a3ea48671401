#include "libs/kubernetes/reviews.h"

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_reader.h"
#include "libs/kubernetes/json_text.h"

namespace fluxqueue::kubernetes {

using nlohmann::json;

std::string TokenReviewText(std::string_view token, std::string_view audience) {
  return JsonText({{"apiVersion", "authentication.k8s.io/v1"},
                   {"kind", "TokenReview"},
                   {"spec", {{"token", token}, {"audiences", json::array({audience})}}}});
}

absl::StatusOr<TokenReview> ParseTokenReview(std::string_view text) {
  internal::Document document("TokenReview", text);
  const internal::Field status = document.root()["status"];
  TokenReview review{.authenticated = status["authenticated"].Bool(),
                     .user = status["user"]["username"].String(),
                     .groups = status["user"]["groups"].Strings(),
                     .uid = status["user"]["uid"].String(),
                     .extra = status["user"]["extra"].StringLists(),
                     .audiences = status["audiences"].Strings()};
  RETURN_IF_ERROR(document.status());
  return review;
}

std::string SubjectAccessReviewText(const AccessQuestion& question) {
  json attributes = {
      {"group", question.group}, {"verb", question.verb}, {"resource", question.resource}};
  if (!question.subresource.empty()) attributes["subresource"] = question.subresource;
  if (!question.space.empty()) attributes["namespace"] = question.space;
  if (!question.name.empty()) attributes["name"] = question.name;
  json spec = {{"user", question.user},
               {"groups", question.groups},
               {"resourceAttributes", std::move(attributes)}};
  if (!question.uid.empty()) spec["uid"] = question.uid;
  if (!question.extra.empty()) spec["extra"] = question.extra;
  return JsonText({{"apiVersion", "authorization.k8s.io/v1"},
                   {"kind", "SubjectAccessReview"},
                   {"spec", std::move(spec)}});
}

absl::StatusOr<AccessReview> ParseSubjectAccessReview(std::string_view text) {
  internal::Document document("SubjectAccessReview", text);
  const internal::Field status = document.root()["status"];
  const AccessReview review{.allowed = status["allowed"].Bool(), .denied = status["denied"].Bool()};
  RETURN_IF_ERROR(document.status());
  return review;
}

}  // namespace fluxqueue::kubernetes
