// What the API server is asked of users: whose a token is (TokenReview), and whether he may do
// something (SubjectAccessReview). Pure, thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// As the body of a create. It holds the token: never to be logged.
std::string TokenReviewText(std::string_view token, std::string_view audience);

struct TokenReview {
  bool authenticated = false;
  std::string user{};
  std::vector<std::string> groups{};
  std::string uid{};
  std::map<std::string, std::vector<std::string>> extra{};
  std::vector<std::string> audiences{};  // for which the token was found to be good
};

absl::StatusOr<TokenReview> ParseTokenReview(std::string_view json);

struct AccessQuestion {
  std::string user{};
  std::vector<std::string> groups{};
  std::string uid{};
  std::map<std::string, std::vector<std::string>> extra{};
  std::string group{};  // of the API
  std::string verb{};
  std::string resource{};
  std::string subresource{};
  std::string space{};  // empty: the whole cluster
  std::string name{};
};

std::string SubjectAccessReviewText(const AccessQuestion& question);

struct AccessReview {
  bool allowed = false;
  bool denied = false;  // by an authorizer, whatever others would say
};
absl::StatusOr<AccessReview> ParseSubjectAccessReview(std::string_view json);

}  // namespace fluxqueue::kubernetes
