#include "services/admission/adapters/webhook_server.h"

#include <utility>

#include <fmt/format.h>

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
                             kubernetes::Cluster& cluster,
                             const Clock& clock,
                             AdmissionMetrics& metrics,
                             tracing::Tracer& tracer)
    : http_(std::move(http)),
      options_(webhook),
      facts_(facts),
      clock_(clock),
      metrics_(metrics),
      tracer_(tracer),
      looks_(facts, cluster, webhook, clock, metrics) {
  http_.refused = [&metrics](http::Refusal refusal) { metrics.TurnedAway(refusal); };
}

absl::Status WebhookServer::Start() {
  http::Router router;
  router.Add("POST", "/mutate", [this](const http::Request& request, http::Respond respond) {
    Mutate(request, std::move(respond));
  });
  router.Add("GET", "/readyz", [this](const http::Request&) {
    const absl::Status ready = Ready();
    return ready.ok() ? http::Response{.body = "ok\n"} : PlainError(503, Message(ready));
  });
  ASSIGN_OR_RETURN(server_, http::Server::Start(http_, router.AsHandler()));
  looks_.Start();
  return absl::OkStatus();
}

void WebhookServer::Stop() {
  if (server_ != nullptr) server_->Stop();
  looks_.Stop();
}

absl::Status WebhookServer::Ready() const {
  if (!facts_.synced()) return Unavailable("the cluster's facts have not been listed yet");
  return absl::OkStatus();
}

void WebhookServer::Mutate(const http::Request& request, http::Respond respond) {
  const auto start = clock_.Monotonic();
  const tracing::Time begin = clock_.Now();
  absl::StatusOr<Review> review = ParseReview(request.body);
  if (!review.ok()) {
    metrics_.Unreadable();
    LogWarning("webhook request refused", {{"error", Message(review.status())}});
    return respond(PlainError(400, Message(review.status())));
  }
  if (!facts_.synced()) {
    return respond(PlainError(503, "admission has not listed the cluster yet; try again"));
  }
  // The API server's request, if that is traced.
  const auto parent =
      tracer_.on()
          ? tracing::ParseTraceparent(http::FindHeader(request.headers, tracing::kTraceparent))
          : std::nullopt;
  if (parent.has_value()) {
    review->span = {parent->trace_id, tracing::SpanId(review->uid, 0, "review")};
  }
  Call call{.uid = review->uid,
            .resource = review->resource,
            .space = review->space,
            .name = review->name,
            .parent = parent,
            .span = review->span,
            .begin = begin,
            .start = start};
  const auto decide = [&](const ClusterFacts& facts) { return Decide(*review, facts, options_); };
  Verdict verdict = facts_.With(decide);
  if (verdict.absent && looks_.Recall(*verdict.absent, &*review)) verdict = facts_.With(decide);
  if (!verdict.absent || looks_.IsKnownAbsent(*verdict.absent)) {
    return respond(Answer(call, verdict));
  }
  const bool waits = looks_.Decide(
      *std::move(review), verdict, [this, call, verdict, respond](const Verdict* again) {
        respond(again == nullptr ? AnswerUnseen(call, verdict) : Answer(call, *again));
      });
  if (!waits) respond(AnswerUnseen(call, std::move(verdict)));
}

http::Response WebhookServer::Answer(const Call& call, const Verdict& verdict) const {
  Note(call, verdict);
  http::Response response;
  response.content_type = "application/json";
  response.body = FormatAnswer(call.uid, verdict);
  metrics_.Judged(verdict.kind, clock_.Monotonic() - call.start);
  if (call.parent.has_value()) {
    tracer_.Record({.trace_id = call.span->trace_id,
                    .span_id = call.span->span_id,
                    .parent_id = call.parent->span_id,
                    .name = "review",
                    .kind = tracing::SpanKind::kServer,
                    .begin = call.begin,
                    .end = clock_.Now(),
                    .attributes = {{"namespace", call.space}, {"name", call.name}}});
  }
  return response;
}

// What would be left alone for want of a look is not let past the queue: the failurePolicy decides.
http::Response WebhookServer::AnswerUnseen(const Call& call, Verdict verdict) const {
  constexpr const char* kUnseen =
      "whether this has changed a moment ago was not looked up, as too many others wait for such a "
      "look; try again";
  metrics_.NoSecondLook();
  // It is in the queue all the same, as a job of its own.
  const bool is_held = verdict.kind == Verdict::Kind::kHold;
  if (is_held && verdict.absent->kind == Absent::Kind::kGroup) return Answer(call, verdict);
  if (verdict.kind != Verdict::Kind::kRefuse) return PlainError(503, kUnseen);
  verdict.message += fmt::format(" ({})", kUnseen);
  return Answer(call, verdict);
}

void WebhookServer::Note(const Call& call, const Verdict& verdict) const {
  if (verdict.kind == Verdict::Kind::kRefuse) {
    LogInfo("refused",
            {{"resource", call.resource},
             {"namespace", call.space},
             {"name", call.name},
             {"why", verdict.message}});
  }
  for (const std::string& warning : verdict.warnings) {
    LogInfo("warned", {{"namespace", call.space}, {"name", call.name}, {"of", warning}});
  }
}

}  // namespace fluxqueue::admission
