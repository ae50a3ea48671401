#include "services/queue/adapters/attempt_keeper.h"

#include <chrono>
#include <set>
#include <string>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/model/accounting_month.h"
#include "services/queue/adapters/attempt_store.h"

namespace fluxqueue::queue {
namespace {

constexpr Millis kInterval = std::chrono::hours(1);
constexpr Millis kRetry = std::chrono::minutes(1);

}  // namespace

AttemptKeeper::AttemptKeeper(const postgres::Options& options, const Clock& clock, int months)
    : clock_(clock), months_(months), connection_(options) {}

absl::Status AttemptKeeper::Run(const std::function<bool(Millis)>& sleep) {
  absl::Status status;
  do {
    status = RunOnce();
    if (!status.ok()) {
      LogWarning("accounting not looked after, trying again", {{"error", Message(status)}});
    }
  } while (sleep(status.ok() ? kInterval : kRetry));
  return absl::OkStatus();
}

absl::Status AttemptKeeper::RunOnce() {
  const auto now = std::chrono::time_point_cast<Millis>(clock_.Now());
  const model::Month present = model::MonthOf(now.time_since_epoch().count());
  std::set<model::Month> known;
  RETURN_IF_ERROR(connection_.Transact([&](pqxx::transaction_base& tx) {
    MakeMonths(tx, {present, present + std::chrono::months(1)});
    known = Months(tx);
    return absl::OkStatus();
  }));
  for (const model::Month month : known) {
    if (month >= present - std::chrono::months(months_)) break;
    RETURN_IF_ERROR(connection_.Transact([&](pqxx::transaction_base& tx) {
      DropMonth(tx, month);
      return absl::OkStatus();
    }));
    LogInfo("accounting is kept no longer", {{"month", model::NameOf(month)}});
  }
  return absl::OkStatus();
}

}  // namespace fluxqueue::queue
