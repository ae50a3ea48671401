#include "libs/matcher_core/forecast.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/base/status_macros.h"
#include "libs/graph/expected_work.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {

using events::v1::PoolConfigured;
using graph::Forecast;

namespace {

bool Forecasts(const PoolConfigured& config) {
  return config.policy() == "packed" && model::HasRules(config.rules(), model::kForecastDecays);
}

matcher::v1::Forecast ToProto(const Forecast& forecast) {
  matcher::v1::Forecast proto;
  for (const Forecast::Remembered& one : forecast.remembered()) {
    auto* shape = proto.add_shapes();
    for (const graph::Amount& amount : one.shape.amounts) {
      auto* added = shape->add_amounts();
      added->set_resource(amount.resource);
      added->set_amount(amount.amount);
    }
    shape->set_constraint(one.shape.constraint.ToJson().dump());
    for (const auto& [tenant, share] : one.by_tenant) {
      auto* added = shape->add_shares();
      added->set_tenant(tenant);
      added->set_counts(share.counts);
      added->set_coming(share.coming);
    }
  }
  proto.set_halved_s(forecast.halved_s());
  return proto;
}

int64_t SecondsOf(Millis now) {
  return now.count() / 1000;
}

absl::StatusOr<Forecast> FromProto(const matcher::v1::Forecast& proto) {
  std::vector<Forecast::Remembered> remembered;
  for (const auto& shape : proto.shapes()) {
    Forecast::Remembered& one = remembered.emplace_back();
    for (const events::v1::Amount& amount : shape.amounts()) {
      one.shape.amounts.push_back({amount.resource(), amount.amount()});
    }
    const auto constraint = nlohmann::json::parse(shape.constraint(), nullptr, false);
    std::optional<std::vector<graph::Toleration>> none;
    ASSIGN_OR_RETURN(one.shape.constraint, graph::Constraint::Parse(constraint, "forecast", &none));
    for (const auto& share : shape.shares()) {
      one.by_tenant[share.tenant()] = {share.counts(), share.coming()};
    }
  }
  return Forecast::Restore(std::move(remembered), proto.halved_s());
}

}  // namespace

void ForecastBook::Configure(const PoolConfigured& was,
                             const PoolConfigured& is,
                             const Specs& specs,
                             Millis now,
                             graph::Engine* engine) {
  Remember();
  if (!Forecasts(is)) {
    forecast_ = Forecast();
    engine->SetForecast(std::nullopt);
    return;
  }
  // What is known of came; whose it is was not noted.
  if (!Forecasts(was)) {
    for (const auto& [key, spec] : specs.map()) {
      if (spec.jobspec != nullptr) forecast_.Arrive("", *spec.jobspec, SecondsOf(now));
    }
  }
  engine->SetForecast(forecast_.Shapes());
}

void ForecastBook::Arrive(const PoolConfigured& config,
                          const std::string& tenant,
                          const graph::Jobspec& jobspec,
                          Millis now,
                          graph::Engine* engine) {
  if (!Forecasts(config)) return;
  const auto& groups = jobspec.groups;
  const bool asks = std::any_of(groups.begin(), groups.end(), [](const graph::SlotGroup& slots) {
    return graph::AsksForGpus(slots.request);
  });
  if (!asks) return;
  Remember();
  forecast_.Arrive(tenant, jobspec, SecondsOf(now));
  if (forecast_.changed()) engine->SetForecast(forecast_.Shapes());
}

std::string ForecastBook::Row(const PoolConfigured& config) const {
  return Forecasts(config) ? ToProto(forecast_).SerializeAsString() : "";
}

absl::Status ForecastBook::Restore(const PoolConfigured& config,
                                   const std::optional<std::string>& row,
                                   graph::Engine* engine) {
  forecast_ = Forecast();
  before_.reset();
  if (!Forecasts(config)) return absl::OkStatus();
  matcher::v1::Forecast proto;
  if (!proto.ParseFromString(row.value_or(""))) {
    return InvalidArgument("the row of its forecast does not decode");
  }
  ASSIGN_OR_RETURN(forecast_, FromProto(proto));
  engine->SetForecast(forecast_.Shapes());
  return absl::OkStatus();
}

void ForecastBook::Remember() {
  if (!before_.has_value()) before_ = forecast_;
}

void ForecastBook::Rollback() {
  if (before_.has_value()) forecast_ = *std::move(before_);
  before_.reset();
}

}  // namespace fluxqueue::matcher_core
