// Prepared statements: a name and a text, prepared on each connection when they are first used
// there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <pqxx/pqxx>

#include "absl/status/status.h"

namespace fluxqueue::postgres {

// `name` must be unique in the program. Both must live for ever (string literals).
struct Statement {
  const char* name;
  const char* sql;
};

// Rows that this thread's statements have inserted, updated or deleted so far (statements that
// return columns do not count). For metrics: take the difference.
uint64_t& RowsWritten();

// Executes a prepared statement; throws what libpqxx throws. Arguments: numbers, bools,
// std::string, pqxx::binarystring for bytea, nullptr; arrays by array.h. A std::string goes as
// text: never pass bytea that way.
template <typename... Args>
pqxx::result Exec(pqxx::transaction_base& tx, const Statement& statement, Args&&... args) {
  tx.conn().prepare(statement.name, statement.sql);
  pqxx::result result = tx.exec_prepared(statement.name, std::forward<Args>(args)...);
  if (result.columns() == 0) RowsWritten() += result.affected_rows();
  return result;
}

using OnRow = std::function<absl::Status(const pqxx::row&)>;
// The halves of ExecEach that know nothing of its arguments: the cursor's declaration, and its
// rows.
std::string DeclareText(const Statement& statement);
absl::Status FetchEach(pqxx::transaction_base& tx, const Statement& statement, const OnRow& on_row);

// As Exec, for a query whose result may be large: a thousand rows of it are in memory at a time.
// The first error of `on_row` ends it, and is returned.
// REQUIRES: `tx` is a transaction, not a nontransaction; the statement's name is an SQL identifier.
template <typename... Args>
absl::Status ExecEach(pqxx::transaction_base& tx,
                      const Statement& statement,
                      const OnRow& on_row,
                      Args&&... args) {
  tx.exec_params(DeclareText(statement), std::forward<Args>(args)...);
  return FetchEach(tx, statement, on_row);
}

}  // namespace fluxqueue::postgres
