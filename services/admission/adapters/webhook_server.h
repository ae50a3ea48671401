// The webhook over HTTPS: POST /mutate, and GET /readyz, which is 200 as soon as reviews are
// answered. That needs neither database nor broker: what is created while these are away is held,
// and submitted later.
//
// An AdmissionReview is always answered by an AdmissionReview with status 200. What is not one gets
// a plain error: 400 (not JSON, another kind), 413 (too large, from libs/http), 503 while the
// cluster's facts have not been listed once, so that the API server's failurePolicy decides.
//
// Before an object is refused or left alone because something seems absent, that is looked up at
// the API server: watches are a moment late, users type fast. One GET, in that case only.
//
// Thread-safe. Has no state of its own and writes nothing anywhere.
#pragma once

#include <memory>
#include <string>

#include "libs/base/clock.h"
#include "libs/http/server.h"
#include "libs/kubernetes/client.h"
#include "libs/lifecycle/component.h"
#include "libs/tracing/tracer.h"
#include "services/admission/adapters/facts_cache.h"
#include "services/admission/domain/webhook.h"
#include "services/admission/metrics.h"

namespace fluxqueue::admission {

class WebhookServer final : public lifecycle::Component {
 public:
  // All references must outlive the server.
  WebhookServer(http::ServerOptions http,
                WebhookOptions webhook,
                const FactsCache& facts,
                kubernetes::Client& client,
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

  // What Start() serves at /mutate.
  http::Response Mutate(const http::Request& request) const;

 private:
  Verdict DecideTwice(const Review& review) const;
  // A copy of the facts with the absent thing, if it exists after all.
  std::unique_ptr<ClusterFacts> LookUp(const Absent& absent) const;
  template <typename Object>
  std::unique_ptr<ClusterFacts> LookUp(const kubernetes::Resource& resource,
                                       const std::string& name,
                                       absl::StatusOr<Object> (*parse)(std::string_view)) const;
  void Note(const Review& review, const Verdict& verdict) const;

  const std::string name_ = "webhook";
  const http::ServerOptions http_;
  const WebhookOptions options_;
  const FactsCache& facts_;
  kubernetes::Client& client_;
  const Clock& clock_;
  AdmissionMetrics& metrics_;
  tracing::Tracer& tracer_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace fluxqueue::admission
