#include "libs/postgres/table.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fluxqueue::postgres {
namespace {

const char* ArrayOf(ColumnType type) {
  switch (type) {
    case ColumnType::kText:
      return "text[]";
    case ColumnType::kNumber:
      return "bigint[]";
    case ColumnType::kFlag:
      return "boolean[]";
    case ColumnType::kBytes:
      return "bytea[]";
    case ColumnType::kJson:
      return "jsonb[]";
  }
  return "";
}

using List = std::vector<std::string>;

std::string Joined(const List& items) {
  return fmt::format("{}", fmt::join(items, ", "));
}

// unnest($2::text[], $3::bigint[]) AS r(job_id, part); `parameter`: of the first.
std::string RowsGiven(const std::vector<ColumnSpec>& columns, bool keys, size_t parameter) {
  List arrays;
  List names;
  for (const ColumnSpec& column : columns) {
    if (column.shared || column.computed || (keys && !column.key)) continue;
    arrays.emplace_back(fmt::format("${}::{}", parameter++, ArrayOf(column.type)));
    names.emplace_back(column.name);
  }
  return fmt::format("unnest({}) AS r({})", Joined(arrays), Joined(names));
}

std::string OnConflict(const std::vector<ColumnSpec>& columns,
                       Conflict conflict,
                       const char* when) {
  if (conflict == Conflict::kFail) return "";
  if (conflict == Conflict::kKeep) return " ON CONFLICT DO NOTHING";
  List keys;
  List updates;
  for (const ColumnSpec& column : columns) {
    if (column.key) {
      keys.emplace_back(column.name);
    } else if (!column.once) {
      updates.emplace_back(fmt::format("{0} = excluded.{0}", column.name));
    }
  }
  return fmt::format(" ON CONFLICT ({}) DO UPDATE SET {}{}{}",
                     Joined(keys),
                     Joined(updates),
                     when == nullptr ? "" : " WHERE ",
                     when == nullptr ? "" : when);
}

}  // namespace

TableSql::TableSql(const char* table,
                   std::vector<ColumnSpec> columns,
                   Conflict conflict,
                   const char* when)
    : columns_(std::move(columns)),
      table_(table),
      write_name_(fmt::format("write {}", table)),
      write_(WriteText(table, conflict, when)),
      delete_name_(fmt::format("delete {}", table)),
      remove_(DeleteText(table)) {}

std::string TableSql::WriteText(const char* table, Conflict conflict, const char* when) const {
  List names;
  List values;
  size_t parameter = 1;
  for (const ColumnSpec& column : columns_) {
    names.emplace_back(column.name);
    if (column.shared) {
      values.emplace_back(fmt::format("${}", parameter++));
    } else {
      values.push_back(column.expression != nullptr ? column.expression
                                                    : fmt::format("r.{}", column.name));
    }
  }
  return fmt::format("INSERT INTO {} AS t ({}) SELECT {} FROM {}{}",
                     table,
                     Joined(names),
                     Joined(values),
                     RowsGiven(columns_, /*keys=*/false, parameter),
                     OnConflict(columns_, conflict, when));
}

// LATERAL … OFFSET 0: the keys drive, also in a plan that is kept (postgres::Plans::kKept).
std::string TableSql::DeleteText(const char* table) const {
  List matches;
  size_t parameter = 1;
  for (const ColumnSpec& column : columns_) {
    if (!column.key) continue;
    const std::string value =
        column.shared ? fmt::format("${}", parameter++) : fmt::format("r.{}", column.name);
    matches.push_back(fmt::format("x.{} = {}", column.name, value));
  }
  return fmt::format(
      "DELETE FROM {0} WHERE ctid = ANY(ARRAY(SELECT f.ctid FROM {1} CROSS JOIN LATERAL "
      "(SELECT x.ctid FROM {0} x WHERE {2} OFFSET 0) f))",
      table,
      RowsGiven(columns_, /*keys=*/true, parameter),
      fmt::join(matches, " AND "));
}

std::string TableSql::Select(std::string_view tail) const {
  List names;
  for (const ColumnSpec& column : columns_) {
    if (!column.shared && !column.computed) names.emplace_back(fmt::format("t.{}", column.name));
  }
  return fmt::format("SELECT {} FROM {} AS t {}", Joined(names), table_, tail);
}

std::vector<std::string> TableSql::KeysOf(const std::vector<std::string>& shared) const {
  std::vector<std::string> keys;
  size_t at = 0;
  for (const ColumnSpec& column : columns_) {
    if (!column.shared) continue;
    if (column.key) keys.push_back(shared[at]);
    ++at;
  }
  return keys;
}

void TableSql::Write(pqxx::transaction_base& tx, const std::vector<std::string>& parameters) const {
  Exec(tx, {write_name_.c_str(), write_.c_str()}, pqxx::prepare::make_dynamic_params(parameters));
}

void TableSql::Delete(pqxx::transaction_base& tx,
                      const std::vector<std::string>& parameters) const {
  Exec(tx, {delete_name_.c_str(), remove_.c_str()}, pqxx::prepare::make_dynamic_params(parameters));
}

}  // namespace fluxqueue::postgres
