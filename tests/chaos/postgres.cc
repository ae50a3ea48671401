#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "tests/chaos/fault.h"

namespace fluxqueue::chaos {
namespace {

using std::chrono::milliseconds;

// The services' sessions, and no others.
absl::Status EndSessions(Site& site) {
  return site.system()
      .Query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE "
          "'fluxqueue\\_%'")
      .status();
}

// What is between two transactions that see each other's rows then ends one of them.
Deed Isolated(const std::string& setting) {
  return [=](Site& site) {
    const auto set = site.system().Query("ALTER DATABASE fluxqueue " + setting);
    RETURN_IF_ERROR(set.status());
    return EndSessions(site);
  };
}

Deed Slow(milliseconds by) {
  return [=](Site& site) {
    site.postgres_front().Delay(by);
    return absl::OkStatus();
  };
}

absl::Status FallSilent(Site& site) {
  site.postgres_front().FallSilent();
  return absl::OkStatus();
}

absl::Status Speak(Site& site) {
  site.postgres_front().Speak();
  return absl::OkStatus();
}

absl::Status Reset(Site& site) {
  site.postgres_front().Cut();
  return absl::OkStatus();
}

absl::Status FailOver(Site& site) {
  return site.FailOver();
}

absl::Status FailBack(Site& site) {
  return site.FailBack();
}

absl::Status FillDisk(Site& site) {
  return site.FillDisk("postgres");
}

absl::Status EmptyDisk(Site& site) {
  return site.EmptyDisk("postgres");
}

}  // namespace

std::vector<Fault> PostgresFaults() {
  return {
      {.name = "postgres is killed",
       .targets = {"postgres"},
       .strike = Killed("postgres/postgres"),
       .heal = Started("postgres")},
      {.name = "postgres says nothing any more",
       .targets = {"postgres"},
       .strike = FallSilent,
       .heal = Speak,
       .held = true},
      {.name = "postgres is slow by 200 ms",
       .targets = {"postgres"},
       .strike = Slow(milliseconds(200)),
       .heal = Slow(milliseconds(0)),
       .held = true},
      {.name = "connections to postgres are reset",
       .targets = {"postgres"},
       .strike = Reset,
       .heal = Nothing},
      {.name = "postgres ends all sessions",
       .targets = {"postgres"},
       .strike = EndSessions,
       .heal = Nothing},
      {.name = "transactions are serializable and fail",
       .targets = {"postgres"},
       .strike = Isolated("SET default_transaction_isolation = 'serializable'"),
       .heal = Isolated("RESET default_transaction_isolation"),
       .held = true},
      {.name = "postgres' disk is full",
       .targets = {"postgres"},
       .strike = FillDisk,
       .heal = Each({EmptyDisk, Started("postgres")}),
       .held = true,
       .needs_disks = true},
      // An asynchronous one: the last commits may be gone, of which the log knows.
      {.name = "postgres fails over to its standby",
       .targets = {"postgres"},
       .strike = FailOver,
       .heal = FailBack,
       .held = true,
       .loses_log = true},
  };
}

}  // namespace fluxqueue::chaos
