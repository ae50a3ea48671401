#include "services/admission/adapters/webhook_server.h"

#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/tracing/trace_context.h"
#include "services/admission/adapters/review_codec.h"

namespace fluxqueue::admission {
namespace {

http::Response PlainError(int status, std::string message) {
  http::Response response;
  response.status = status;
  response.body = std::move(message) + "\n";
  return response;
}

}  // namespace

WebhookServer::WebhookServer(http::ServerOptions http,
                             WebhookOptions webhook,
                             const FactsCache& facts,
                             kubernetes::Client& client,
                             const Clock& clock,
                             AdmissionMetrics& metrics,
                             tracing::Tracer& tracer)
    : http_(std::move(http)),
      options_(webhook),
      facts_(facts),
      client_(client),
      clock_(clock),
      metrics_(metrics),
      tracer_(tracer) {}

absl::Status WebhookServer::Start() {
  http::Router router;
  router.Add("POST", "/mutate", [this](const http::Request& request) { return Mutate(request); });
  router.Add("GET", "/readyz", [this](const http::Request&) {
    const absl::Status ready = Ready();
    return ready.ok() ? http::Response{.body = "ok\n"} : PlainError(503, Message(ready));
  });
  ASSIGN_OR_RETURN(server_, http::Server::Start(http_, router.AsHandler()));
  return absl::OkStatus();
}

void WebhookServer::Stop() {
  if (server_ != nullptr) server_->Stop();
}

absl::Status WebhookServer::Ready() const {
  if (!facts_.synced()) return Unavailable("the cluster's facts have not been listed yet");
  return absl::OkStatus();
}

http::Response WebhookServer::Mutate(const http::Request& request) const {
  const auto start = clock_.Monotonic();
  const tracing::Time begin = clock_.Now();
  absl::StatusOr<Review> review = ParseReview(request.body);
  if (!review.ok()) {
    metrics_.Unreadable();
    LogWarning("webhook request refused", {{"error", Message(review.status())}});
    return PlainError(400, Message(review.status()));
  }
  if (!facts_.synced()) {
    return PlainError(503, "admission has not listed the cluster yet; try again");
  }
  // The API server's request, if that is traced.
  const auto parent =
      tracer_.on()
          ? tracing::ParseTraceparent(http::FindHeader(request.headers, tracing::kTraceparent))
          : std::nullopt;
  if (parent.has_value()) {
    review->span = {parent->trace_id, tracing::SpanId(review->uid, 0, "review")};
  }
  const Verdict verdict = DecideTwice(*review);
  Note(*review, verdict);
  http::Response response;
  response.content_type = "application/json";
  response.body = FormatAnswer(review->uid, verdict);
  metrics_.Judged(verdict.kind, clock_.Monotonic() - start);
  if (parent.has_value()) {
    tracer_.Record({.trace_id = review->span->trace_id,
                    .span_id = review->span->span_id,
                    .parent_id = parent->span_id,
                    .name = "review",
                    .kind = tracing::SpanKind::kServer,
                    .begin = begin,
                    .end = clock_.Now(),
                    .attributes = {{"namespace", review->space}, {"name", review->name}}});
  }
  return response;
}

Verdict WebhookServer::DecideTwice(const Review& review) const {
  Verdict verdict =
      facts_.With([&](const ClusterFacts& facts) { return Decide(review, facts, options_); });
  // Two things can be missing at once, such as a namespace and its queue; more is not worth the
  // wait.
  for (int look = 0; look < 2 && verdict.absent; ++look) {
    const std::unique_ptr<ClusterFacts> facts = LookUp(*verdict.absent);
    if (facts == nullptr) break;
    const Absent before = *verdict.absent;
    verdict = Decide(review, *facts, options_);
    if (verdict.absent == before) break;
  }
  return verdict;
}

template <typename Object>
std::unique_ptr<ClusterFacts> WebhookServer::LookUp(
    const kubernetes::Resource& resource,
    const std::string& name,
    absl::StatusOr<Object> (*parse)(std::string_view)) const {
  const absl::StatusOr<std::string> text = client_.Get(resource, "", name);
  if (!text.ok()) {
    if (!absl::IsNotFound(text.status())) {
      LogWarning(
          "second look failed",
          {{"resource", resource.plural}, {"name", name}, {"error", Message(text.status())}});
    }
    return nullptr;
  }
  absl::StatusOr<Object> object = parse(*text);
  if (!object.ok()) return nullptr;
  auto facts =
      facts_.With([](const ClusterFacts& known) { return std::make_unique<ClusterFacts>(known); });
  facts->Upsert(*std::move(object));
  return facts;
}

std::unique_ptr<ClusterFacts> WebhookServer::LookUp(const Absent& absent) const {
  metrics_.SecondLook();
  switch (absent.kind) {
    case Absent::Kind::kNamespace:
      return LookUp(kubernetes::kNamespaces, absent.name, kubernetes::ParseNamespace);
    case Absent::Kind::kQueue:
      return LookUp(kubernetes::kFluxQueues, absent.name, kubernetes::ParseFluxQueue);
    case Absent::Kind::kPriorityClass:
      return LookUp(kubernetes::kPriorityClasses, absent.name, kubernetes::ParsePriorityClass);
    case Absent::Kind::kRuntimeClass:
      return LookUp(kubernetes::kRuntimeClasses, absent.name, kubernetes::ParseRuntimeClass);
  }
  return nullptr;
}

void WebhookServer::Note(const Review& review, const Verdict& verdict) const {
  if (verdict.kind == Verdict::Kind::kRefuse) {
    LogInfo("refused",
            {{"resource", review.resource},
             {"namespace", review.space},
             {"name", review.name},
             {"why", verdict.message}});
  }
  for (const std::string& warning : verdict.warnings) {
    LogInfo("warned", {{"namespace", review.space}, {"name", review.name}, {"of", warning}});
  }
}

}  // namespace fluxqueue::admission
