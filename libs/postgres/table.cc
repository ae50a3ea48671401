#include "libs/postgres/table.h"

#include <utility>

#include <fmt/format.h>

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

// Adds items to a text, with commas between them.
class List {
 public:
  void Add(std::string_view item) {
    if (!text_.empty()) text_ += ", ";
    text_ += item;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// unnest($2::text[], $3::bigint[]) AS r(job_id, part); `parameter`: of the first.
std::string RowsGiven(const std::vector<ColumnSpec>& columns, bool keys, size_t parameter) {
  List arrays;
  List names;
  for (const ColumnSpec& column : columns) {
    if (column.shared || column.computed || (keys && !column.key)) continue;
    arrays.Add(fmt::format("${}::{}", parameter++, ArrayOf(column.type)));
    names.Add(column.name);
  }
  return fmt::format("unnest({}) AS r({})", arrays.text(), names.text());
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
      keys.Add(column.name);
    } else if (!column.once) {
      updates.Add(fmt::format("{0} = excluded.{0}", column.name));
    }
  }
  return fmt::format(" ON CONFLICT ({}) DO UPDATE SET {}{}{}",
                     keys.text(),
                     updates.text(),
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
    names.Add(column.name);
    if (column.shared) {
      values.Add(fmt::format("${}", parameter++));
    } else {
      values.Add(column.expression != nullptr ? column.expression
                                              : fmt::format("r.{}", column.name));
    }
  }
  return fmt::format("INSERT INTO {} AS t ({}) SELECT {} FROM {}{}",
                     table,
                     names.text(),
                     values.text(),
                     RowsGiven(columns_, /*keys=*/false, parameter),
                     OnConflict(columns_, conflict, when));
}

// LATERAL … OFFSET 0: the keys drive, also in a plan that is kept (postgres::Plans::kKept).
std::string TableSql::DeleteText(const char* table) const {
  std::string matches;
  size_t parameter = 1;
  for (const ColumnSpec& column : columns_) {
    if (!column.key) continue;
    const std::string value =
        column.shared ? fmt::format("${}", parameter++) : fmt::format("r.{}", column.name);
    matches += fmt::format("{}x.{} = {}", matches.empty() ? "" : " AND ", column.name, value);
  }
  return fmt::format(
      "DELETE FROM {0} WHERE ctid = ANY(ARRAY(SELECT f.ctid FROM {1} CROSS JOIN LATERAL "
      "(SELECT x.ctid FROM {0} x WHERE {2} OFFSET 0) f))",
      table,
      RowsGiven(columns_, /*keys=*/true, parameter),
      matches);
}

std::string TableSql::Select(std::string_view tail) const {
  List names;
  for (const ColumnSpec& column : columns_) {
    if (!column.shared && !column.computed) names.Add(fmt::format("t.{}", column.name));
  }
  return fmt::format("SELECT {} FROM {} AS t {}", names.text(), table_, tail);
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
