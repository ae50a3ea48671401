#include "libs/postgres/pruner.h"

#include <chrono>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::postgres {
namespace {

constexpr Millis kInterval = std::chrono::minutes(1);
// Nobody waits for it: better slowly, on a slow disk, than never.
constexpr Millis kPatience = std::chrono::minutes(5);

Options OwnOptions(Options options) {
  options.plans = Plans::kKept;
  options.statement_timeout = kPatience;
  return options;
}

}  // namespace

Pruner::Pruner(Options options, const Clock& clock, Plan plan)
    : clock_(clock), plan_(std::move(plan)), connection_(OwnOptions(std::move(options))) {}

absl::Status Pruner::Run(const Sleep& sleep) {
  do {
    const absl::Status status = RunOnce(sleep);
    if (!status.ok()) {
      LogWarning("old rows not deleted, trying again", {{"error", Message(status)}});
    }
  } while (sleep(kInterval));
  return absl::OkStatus();
}

absl::Status Pruner::Take(const Step& step, size_t* deleted) {
  return connection_.Transact([&](pqxx::transaction_base& tx) {
    *deleted = step(tx);
    return absl::OkStatus();
  });
}

absl::Status Pruner::RunOnce(const Sleep& sleep) {
  Steps steps;
  RETURN_IF_ERROR(connection_.Transact([&](pqxx::transaction_base& tx) {
    steps = plan_(tx);
    return absl::OkStatus();
  }));
  absl::Status failed;
  while (!steps.empty()) {
    Steps unfinished;
    for (Step& step : steps) {
      const auto begun = clock_.Monotonic();
      size_t deleted = 0;
      failed.Update(Take(step, &deleted));
      if (deleted >= kMost) unfinished.push_back(std::move(step));
      if (!sleep(std::chrono::ceil<Millis>(clock_.Monotonic() - begun))) return failed;
    }
    steps = std::move(unfinished);
  }
  return failed;
}

}  // namespace fluxqueue::postgres
