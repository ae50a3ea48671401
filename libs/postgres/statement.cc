#include "libs/postgres/statement.h"

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::postgres {
namespace {

constexpr int kRowsAtOnce = 1000;

}  // namespace

uint64_t& RowsWritten() {
  thread_local uint64_t rows = 0;
  return rows;
}

std::string DeclareText(const Statement& statement) {
  return fmt::format("DECLARE {} NO SCROLL CURSOR FOR {}", statement.name, statement.sql);
}

absl::Status FetchEach(pqxx::transaction_base& tx,
                       const Statement& statement,
                       const OnRow& on_row) {
  const std::string fetch = fmt::format("FETCH {} FROM {}", kRowsAtOnce, statement.name);
  for (;;) {
    const pqxx::result rows = tx.exec(fetch);
    for (const pqxx::row& row : rows) RETURN_IF_ERROR(on_row(row));
    if (rows.size() < kRowsAtOnce) break;
  }
  tx.exec(fmt::format("CLOSE {}", statement.name));
  return absl::OkStatus();
}

}  // namespace fluxqueue::postgres
