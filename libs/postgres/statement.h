// Prepared statements: a name and a text, prepared on each connection when they are first used there.
#pragma once

#include <pqxx/pqxx>

#include <utility>

namespace fluxqueue::postgres {

// `name` must be unique in the program. Both must live for ever (string literals).
struct Statement {
  const char* name;
  const char* sql;
};

// Executes a prepared statement; throws what libpqxx throws. Arguments: numbers, bools, std::string, pqxx::binarystring
// for bytea, nullptr; arrays by array.h. A std::string goes as text: never pass bytea that way.
template <typename... Args>
pqxx::result Exec(pqxx::transaction_base& tx, const Statement& statement, Args&&... args) {
  tx.conn().prepare(statement.name, statement.sql);
  return tx.exec_prepared(statement.name, std::forward<Args>(args)...);
}

}  // namespace fluxqueue::postgres
