// The webhook over HTTPS: POST /mutate, and GET /readyz, which is 200 as soon as reviews are
// answered. That needs neither database nor broker: what is created while these are away is held,
// and submitted later.
//
// An AdmissionReview is always answered by an AdmissionReview with status 200. What is not one gets
// a plain error: 400 (not JSON, another kind), 413 (too large, from libs/http), 503 while the
// cluster's facts have not been listed once, so that the API server's failurePolicy decides.
//
// Before an object is refused or left alone because something seems absent, that is looked up at
// the API server: watches are a moment late, users type fast. So is what is scaled, each time;
// nothing else. That holds up no answers to others (second_looks.h). Where too many wait for such a
// look already, a refusal says that there was none, and what would be left alone gets 503.
//
// Thread-safe. Writes nothing anywhere.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "libs/base/clock.h"
#include "libs/http/server.h"
#include "libs/kubernetes/cluster.h"
#include "libs/lifecycle/component.h"
#include "libs/tracing/tracer.h"
#include "services/admission/adapters/facts_cache.h"
#include "services/admission/adapters/second_looks.h"
#include "services/admission/domain/webhook.h"
#include "services/admission/metrics.h"

namespace fluxqueue::admission {

class WebhookServer final : public lifecycle::Component {
 public:
  // All references must outlive the server.
  WebhookServer(http::ServerOptions http,
                WebhookOptions webhook,
                const FactsCache& facts,
                kubernetes::Cluster& cluster,
                const Clock& clock,
                AdmissionMetrics& metrics,
                tracing::Tracer& tracer);

  const std::string& name() const override { return name_; }
  // FailedPrecondition: the port is in use. InvalidArgument: the certificate cannot be used.
  absl::Status Start() override;
  void Stop() override;
  absl::Status Ready() const override;

  // REQUIRES: Start() has succeeded.
  int port() const { return server_->port(); }
  const SecondLooks& looks() const { return looks_; }

 private:
  // What a review's answer needs of it, and what is told of it.
  struct Call {
    std::string uid;
    std::string resource;
    std::string space;
    std::string name;
    std::optional<tracing::Context> parent;
    std::optional<tracing::Context> span;
    tracing::Time begin;
    std::chrono::steady_clock::time_point start;
  };

  void Mutate(const http::Request& request, http::Respond respond);
  http::Response Answer(const Call& call, const Verdict& verdict) const;
  http::Response AnswerUnseen(const Call& call, Verdict verdict) const;
  void Note(const Call& call, const Verdict& verdict) const;

  const std::string name_ = "webhook";
  http::ServerOptions http_;
  const WebhookOptions options_;
  const FactsCache& facts_;
  const Clock& clock_;
  AdmissionMetrics& metrics_;
  tracing::Tracer& tracer_;
  std::unique_ptr<http::Server> server_;
  SecondLooks looks_;  // goes before the server, whose calls it may hold
};

}  // namespace fluxqueue::admission
