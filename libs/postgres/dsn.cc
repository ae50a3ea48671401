#include "libs/postgres/dsn.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <libpq-fe.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::postgres {
namespace {

bool IsUri(std::string_view dsn) {
  return dsn.starts_with("postgres://") || dsn.starts_with("postgresql://");
}

using Parsed = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

// Null where it does not parse. What libpq says of that may repeat a part of a password.
Parsed Parse(const std::string& dsn) {
  char* error = nullptr;
  Parsed parsed(PQconninfoParse(dsn.c_str(), &error), &PQconninfoFree);
  if (parsed == nullptr) PQfreemem(error);
  return parsed;
}

// Of an option that libpq has; empty: it is not said.
std::string_view Value(const Parsed& parsed, std::string_view keyword) {
  for (const PQconninfoOption* option = parsed.get();
       option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->keyword == keyword && option->val != nullptr) return option->val;
  }
  return "";
}

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing changes it
  return value == nullptr ? "" : value;
}

bool IsFromEnvironment(std::string_view value) {
  return value.starts_with("${") && value.find('}') == value.size() - 1;
}

// What libpq's own programs take for a DSN where a database is named. We do not; but who writes it
// means it so, with a password in it, perhaps.
bool IsNestedDsn(std::string_view dbname) {
  return IsUri(dbname) || dbname.find('=') != std::string_view::npos;
}

// Of one host or address in a list.
bool IsHere(std::string_view host) {
  return host.empty() || host == "localhost" || host == "::1" || host.starts_with("127.") ||
         host.starts_with('/') || host.starts_with('@');
}

bool AllHere(std::string_view hosts) {
  while (true) {
    const size_t comma = hosts.find(',');
    if (!IsHere(hosts.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    hosts.remove_prefix(comma + 1);
  }
}

// What libpq would connect to is an address where there is one, whatever the host is called.
bool StaysHere(const Parsed& parsed) {
  for (const auto& [keyword, variable] :
       {std::pair{"hostaddr", "PGHOSTADDR"}, std::pair{"host", "PGHOST"}}) {
    std::string_view hosts = Value(parsed, keyword);
    if (hosts.empty()) hosts = Environment(variable);
    if (!hosts.empty()) return AllHere(hosts);
  }
  return true;
}

}  // namespace

std::string DescribeDsn(const std::string& dsn) {
  const Parsed parsed = Parse(dsn);
  if (parsed == nullptr) {
    return "Postgres (its DSN does not parse: write postgresql://user@host:port/database)";
  }
  std::string text = "Postgres";
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    const std::string_view key = option->keyword;
    if (option->val == nullptr) continue;
    if (key == "dbname" && IsNestedDsn(option->val)) {
      text += " dbname=(a DSN)";
      continue;
    }
    if (key == "host" || key == "hostaddr" || key == "port" || key == "dbname" || key == "user") {
      text += fmt::format(" {}={}", key, option->val);
    }
  }
  return text;
}

bool HoldsPassword(const std::string& dsn) {
  const Parsed parsed = Parse(dsn);
  for (const char* keyword : {"password", "sslpassword"}) {
    const std::string_view value = Value(parsed, keyword);
    if (!value.empty() && !IsFromEnvironment(value)) return true;
  }
  const std::string_view dbname = Value(parsed, "dbname");
  return IsNestedDsn(dbname) && HoldsPassword(std::string(dbname));
}

std::string TlsMode(const std::string& dsn) {
  const Parsed parsed = Parse(dsn);
  std::string_view mode = Value(parsed, "sslmode");
  if (mode.empty()) mode = Environment("PGSSLMODE");
  if (!mode.empty()) return std::string(mode);
  return StaysHere(parsed) ? "" : "verify-full";
}

absl::Status CheckDsn(const std::string& dsn) {
  const Parsed parsed = Parse(dsn);
  if (parsed == nullptr) return InvalidArgument("{}: see postgres.dsn", DescribeDsn(dsn));
  // The server would repeat it in its answer.
  if (IsNestedDsn(Value(parsed, "dbname"))) {
    return InvalidArgument(
        "postgres.dsn: its dbname is a DSN of its own: write the name of a database there, and all "
        "else that it says into postgres.dsn itself");
  }
  const std::string mode = TlsMode(dsn);
  if (mode != "prefer" && mode != "allow") return absl::OkStatus();
  return InvalidArgument(
      "postgres.dsn: sslmode={} goes on in plain text where no TLS is offered: write "
      "sslmode=verify-full, which is the default, or say sslmode=disable if plain text is meant",
      mode);
}

std::string DsnToConnect(const std::string& dsn, Millis connect) {
  std::vector<std::string> more = {
      fmt::format("connect_timeout={}", std::max<int64_t>(1, connect.count() / 1000)),
      "tcp_user_timeout=15000",
      "keepalives_idle=10",
      "keepalives_interval=5",
      "keepalives_count=3"};
  if (const std::string tls = TlsMode(dsn); !tls.empty()) more.push_back("sslmode=" + tls);
  if (!IsUri(dsn)) return fmt::format("{} {}", dsn, fmt::join(more, " "));
  return fmt::format(
      "{}{}{}", dsn, dsn.find('?') == std::string::npos ? '?' : '&', fmt::join(more, "&"));
}

absl::Status Ping(const std::string& dsn, Millis patience) {
  RETURN_IF_ERROR(CheckDsn(dsn));
  const PGPing answer = PQping(DsnToConnect(dsn, patience).c_str());
  if (answer == PQPING_OK || answer == PQPING_REJECT) return absl::OkStatus();
  if (answer == PQPING_NO_RESPONSE) return Unavailable("{} does not answer", DescribeDsn(dsn));
  return InvalidArgument("{}: see postgres.dsn", DescribeDsn(dsn));
}

}  // namespace fluxqueue::postgres
