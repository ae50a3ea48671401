#include "services/admission/adapters/usage_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "services/admission/adapters/admission_store.h"

namespace fluxqueue::admission {
namespace {

constexpr Millis kPause{1000};
// Reading takes at most this part of the database's time: 1 / kShare.
constexpr int kShare = 20;

bool HasQuota(const ClusterFacts& facts) {
  return std::any_of(facts.queues().begin(), facts.queues().end(), [](const auto& queue) {
    return !queue.second.namespace_quota.empty();
  });
}

}  // namespace

UsageReader::UsageReader(postgres::Options options, FactsCache& facts)
    : connection_(std::move(options)), facts_(facts) {}

absl::Status UsageReader::Read() {
  UsageBySpace usage;
  RETURN_IF_ERROR(connection_.Query([&usage](pqxx::transaction_base& tx) {
    usage = LoadUsage(tx);
    return absl::OkStatus();
  }));
  facts_.SetUsage(std::move(usage));
  return absl::OkStatus();
}

absl::Status UsageReader::Run(lifecycle::LoopContext& loop) {
  bool failed = false;
  Millis pause = kPause;
  while (loop.SleepFor(pause)) {
    if (!facts_.With(HasQuota)) continue;
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = Read();
    const auto took = std::chrono::steady_clock::now() - begin;
    pause = std::max(kPause, kShare * std::chrono::duration_cast<Millis>(took));
    if (!status.ok() && !failed) {
      LogWarning("the usage of namespaces cannot be read", {{"error", Message(status)}});
    }
    failed = !status.ok();
  }
  return absl::OkStatus();
}

}  // namespace fluxqueue::admission
