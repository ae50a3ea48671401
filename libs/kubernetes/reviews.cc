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
  return JsonText({{"apiVersion", "authorization.k8s.io/v1"},
                   {"kind", "SubjectAccessReview"},
                   {"spec",
                    {{"user", question.user},
                     {"groups", question.groups},
                     {"resourceAttributes", std::move(attributes)}}}});
}

absl::StatusOr<bool> ParseSubjectAccessReview(std::string_view text) {
  internal::Document document("SubjectAccessReview", text);
  const internal::Field status = document.root()["status"];
  const bool allowed = status["allowed"].Bool() && !status["denied"].Bool();
  RETURN_IF_ERROR(document.status());
  return allowed;
}

}  // namespace fluxqueue::kubernetes
