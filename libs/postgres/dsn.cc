#include "libs/postgres/dsn.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::postgres {
namespace {

bool IsUri(std::string_view dsn) {
  return dsn.starts_with("postgres://") || dsn.starts_with("postgresql://");
}

}  // namespace

std::string DescribeDsn(const std::string& dsn) {
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> parsed(
      PQconninfoParse(dsn.c_str(), &error), &PQconninfoFree);
  if (parsed == nullptr) {
    PQfreemem(error);
    return "Postgres (its DSN does not parse: write postgresql://user@host:port/database)";
  }
  std::string text = "Postgres";
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    const std::string_view key = option->keyword;
    if (option->val == nullptr) continue;
    if (key == "host" || key == "hostaddr" || key == "port" || key == "dbname" || key == "user") {
      text += fmt::format(" {}={}", key, option->val);
    }
  }
  return text;
}

std::string DsnWithTimeouts(const std::string& dsn, Millis connect) {
  const auto seconds = std::max<int64_t>(1, connect.count() / 1000);
  if (IsUri(dsn)) {
    return fmt::format("{}{}connect_timeout={}&tcp_user_timeout=15000",
                       dsn,
                       dsn.find('?') == std::string::npos ? '?' : '&',
                       seconds);
  }
  return fmt::format("{} connect_timeout={} tcp_user_timeout=15000", dsn, seconds);
}

absl::Status Ping(const std::string& dsn, Millis patience) {
  const PGPing answer = PQping(DsnWithTimeouts(dsn, patience).c_str());
  if (answer == PQPING_OK || answer == PQPING_REJECT) return absl::OkStatus();
  if (answer == PQPING_NO_RESPONSE) return Unavailable("{} does not answer", DescribeDsn(dsn));
  return InvalidArgument("{}: see postgres.dsn", DescribeDsn(dsn));
}

}  // namespace fluxqueue::postgres
