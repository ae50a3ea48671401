#include "libs/access/cluster_authority.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <openssl/sha.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/resource.h"
#include "libs/kubernetes/reviews.h"

#include "fmt/format.h"

namespace fluxqueue::access {
namespace {

// Of texts of any length, each with its length, so that no two lists are one.
std::string Digest(const std::vector<std::string_view>& texts) {
  std::string all;
  for (const std::string_view text : texts) {
    all += fmt::format("{}:", text.size());
    all += text;
  }
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(all.data()),
         all.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string KeyOf(const User& user, const Right& right) {
  std::vector<std::string_view> texts = {
      user.name, user.uid, right.verb, right.resource, right.subresource, right.space, right.name};
  // Each list ends with a text that none of it can be: it has a control character.
  constexpr std::string_view kEnd{"\0", 1};
  const auto add = [&texts, kEnd](const std::vector<std::string>& list) {
    texts.insert(texts.end(), list.begin(), list.end());
    texts.push_back(kEnd);
  };
  add(user.groups);
  for (const auto& [key, values] : user.extra) {
    texts.push_back(key);
    add(values);
  }
  return Digest(texts);
}

absl::Status CannotAsk() {
  return Unavailable(
      "the Kubernetes API server did not say who calls and what he may do: call again");
}

absl::Status Nobodys() {
  return MakeStatus(
      absl::StatusCode::kUnauthenticated,
      "the API server takes the token for nobody's: it is unknown, has expired, its account is "
      "gone, or it is not made for the audience {0} (kubectl create token ACCOUNT --audience {0})",
      kAudience);
}

}  // namespace

ClusterAuthority::ClusterAuthority(kubernetes::Client& client,
                                   const Clock& clock,
                                   const Options& options)
    : client_(client),
      clock_(clock),
      options_(options),
      users_(clock, options.age, options.most),
      rights_(clock, options.age, options.most),
      queues_(clock, options.age, options.most),
      spaces_(clock, options.age, options.most) {}

absl::StatusOr<User> ClusterAuthority::WhoseIs(const std::string& token) {
  const std::string key = Digest({token});
  std::optional<std::optional<User>> known = users_.Find(key);
  if (!known.has_value()) {
    ASSIGN_OR_RETURN(
        const std::string answer,
        Create(kubernetes::kTokenReviews, kubernetes::TokenReviewText(token, kAudience)));
    absl::StatusOr<kubernetes::TokenReview> read = kubernetes::ParseTokenReview(answer);
    if (!read.ok()) return NoAnswer(read.status());
    kubernetes::TokenReview review = *std::move(read);
    // An API server that knows no audiences names none.
    const bool for_us = std::find(review.audiences.begin(), review.audiences.end(), kAudience) !=
                        review.audiences.end();
    known.emplace();
    if (review.authenticated && for_us && !review.user.empty()) {
      *known = User{.name = std::move(review.user),
                    .groups = std::move(review.groups),
                    .uid = std::move(review.uid),
                    .extra = std::move(review.extra)};
    }
    users_.Put(key, *known);
  }
  if (!known->has_value()) return Nobodys();
  return **std::move(known);
}

absl::StatusOr<Verdict> ClusterAuthority::Judge(const User& user, const Right& right) {
  const std::string key = KeyOf(user, right);
  if (const std::optional<Verdict> known = rights_.Find(key)) return *known;
  ASSIGN_OR_RETURN(const std::string answer,
                   Create(kubernetes::kSubjectAccessReviews,
                          kubernetes::SubjectAccessReviewText({.user = user.name,
                                                               .groups = user.groups,
                                                               .uid = user.uid,
                                                               .extra = user.extra,
                                                               .group = kGroup,
                                                               .verb = right.verb,
                                                               .resource = right.resource,
                                                               .subresource = right.subresource,
                                                               .space = right.space,
                                                               .name = right.name})));
  const auto review = kubernetes::ParseSubjectAccessReview(answer);
  if (!review.ok()) return NoAnswer(review.status());
  const Verdict verdict = review->denied    ? Verdict::kDenied
                          : review->allowed ? Verdict::kAllowed
                                            : Verdict::kNoOpinion;
  rights_.Put(key, verdict);
  return verdict;
}

absl::StatusOr<QueuesByName> ClusterAuthority::QueueAndAbove(const std::string& name) {
  QueuesByName queues;
  std::string next = name;
  while (!next.empty() && !queues.contains(next)) {
    ASSIGN_OR_RETURN(std::optional<kubernetes::FluxQueue> queue, Queue(next));
    if (!queue.has_value()) break;
    std::string parent = queue->parent;
    queues.emplace(std::move(next), *std::move(queue));
    next = std::move(parent);
  }
  return queues;
}

absl::StatusOr<std::optional<kubernetes::FluxQueue>> ClusterAuthority::Queue(
    const std::string& name) {
  if (auto known = queues_.Find(name)) return *std::move(known);
  std::optional<kubernetes::FluxQueue> queue;
  const absl::StatusOr<std::string> answer = Get(kubernetes::kFluxQueues, name);
  if (!answer.ok() && !absl::IsNotFound(answer.status())) return answer.status();
  if (answer.ok()) {
    absl::StatusOr<kubernetes::FluxQueue> read = kubernetes::ParseFluxQueue(*answer);
    if (!read.ok()) return NoAnswer(read.status());
    queue = *std::move(read);
  }
  queues_.Put(name, queue);
  return queue;
}

absl::StatusOr<std::optional<kubernetes::StringMap>> ClusterAuthority::LabelsOf(
    const std::string& space) {
  if (auto known = spaces_.Find(space)) return *std::move(known);
  std::optional<kubernetes::StringMap> labels;
  const absl::StatusOr<std::string> answer = Get(kubernetes::kNamespaces, space);
  if (!answer.ok() && !absl::IsNotFound(answer.status())) return answer.status();
  if (answer.ok()) {
    absl::StatusOr<kubernetes::Namespace> read = kubernetes::ParseNamespace(*answer);
    if (!read.ok()) return NoAnswer(read.status());
    labels = std::move(read->labels);
  }
  spaces_.Put(space, labels);
  return labels;
}

absl::StatusOr<std::string> ClusterAuthority::Create(const kubernetes::Resource& resource,
                                                     const std::string& body) {
  RETURN_IF_ERROR(CheckThere());
  absl::StatusOr<std::string> answer = client_.Create(resource, "", body, options_.timeout);
  if (!answer.ok()) return NoAnswer(answer.status());
  return answer;
}

absl::StatusOr<std::string> ClusterAuthority::Get(const kubernetes::Resource& resource,
                                                  const std::string& name) {
  RETURN_IF_ERROR(CheckThere());
  absl::StatusOr<std::string> answer = client_.Get(resource, "", name, options_.timeout);
  if (!answer.ok() && !absl::IsNotFound(answer.status())) return NoAnswer(answer.status());
  return answer;
}

absl::Status ClusterAuthority::CheckThere() {
  const std::lock_guard lock(mutex_);
  return clock_.Monotonic() < away_until_ ? CannotAsk() : absl::OkStatus();
}

absl::Status ClusterAuthority::NoAnswer(const absl::Status& why) {
  // It is there, and does not like this one question; which it may repeat, with the token.
  if (absl::IsInvalidArgument(why)) {
    LogWarning("the API server does not accept a question about a caller");
    return CannotAsk();
  }
  LogWarning("the API server was asked about a caller in vain", {{"error", Message(why)}});
  const std::lock_guard lock(mutex_);
  away_until_ = clock_.Monotonic() + options_.outage;
  return CannotAsk();
}

}  // namespace fluxqueue::access
