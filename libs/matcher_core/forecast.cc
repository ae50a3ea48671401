// What `packed` expects by rules from 6 on: what came, in a row of its own.
#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/expected_work.h"
#include "libs/matcher_core/batch.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {
namespace {

using graph::Forecast;

bool Forecasts(const events::v1::PoolConfigured& config) {
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

void MatcherCore::NoteForecast() {
  if (!batch_->forecast_before.has_value()) batch_->forecast_before = forecast_;
}

void MatcherCore::ForecastBy(const events::v1::PoolConfigured& config, Millis now) {
  NoteForecast();
  if (!Forecasts(config)) {
    forecast_ = Forecast();
    engine_->SetForecast(std::nullopt);
    return;
  }
  // What is known of came; whose it is was not noted.
  if (!Forecasts(state_.config())) {
    for (const auto& [key, spec] : specs_.map()) {
      if (spec.jobspec != nullptr) forecast_.Arrive("", *spec.jobspec, SecondsOf(now));
    }
  }
  engine_->SetForecast(forecast_.Shapes());
}

void MatcherCore::Arrived(const SpecKey& key, const std::string& tenant, Millis now) {
  const Spec& spec = specs_.map().at(key);
  if (spec.jobspec == nullptr || !Forecasts(state_.config())) return;
  const auto& groups = spec.jobspec->groups;
  const bool asks = std::any_of(groups.begin(), groups.end(), [](const graph::SlotGroup& slots) {
    return graph::AsksForGpus(slots.request);
  });
  if (!asks) return;
  NoteForecast();
  forecast_.Arrive(tenant, *spec.jobspec, SecondsOf(now));
  if (forecast_.changed()) engine_->SetForecast(forecast_.Shapes());
}

absl::Status MatcherCore::RestoreForecast(const std::optional<std::string>& row) {
  forecast_ = Forecast();
  if (!Forecasts(state_.config())) return absl::OkStatus();
  matcher::v1::Forecast proto;
  if (!proto.ParseFromString(row.value_or(""))) {
    return InvalidArgument("the row of its forecast does not decode");
  }
  ASSIGN_OR_RETURN(forecast_, FromProto(proto));
  engine_->SetForecast(forecast_.Shapes());
  return absl::OkStatus();
}

std::string MatcherCore::ForecastRow() const {
  return Forecasts(state_.config()) ? ToProto(forecast_).SerializeAsString() : "";
}

}  // namespace fluxqueue::matcher_core
