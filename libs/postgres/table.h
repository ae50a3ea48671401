// A table whose rows are structs: one description, from which follow the statements that write,
// delete and read them.
//
//   const Table<SpecRow>& Specs() {
//     static const Table<SpecRow> table("matcher.specs",
//                                       {Shared("pool")},
//                                       {Field<&SpecRow::job_id>("job_id").Key(),
//                                        Field<&SpecRow::part>("part").Key(),
//                                        Field<&SpecRow::jobspec>("jobspec")});
//     return table;
//   }
//   Specs().Write(tx, changes.specs, pool);
//   static const std::string sql = Specs().Select("WHERE t.pool = $1");
//   rows = Specs().Read(Exec(tx, {"specs_of_pool", sql.c_str()}, pool));
//
// Each is one statement for any number of rows, and none for none. Throws what libpqxx throws.
// Thread-safe.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pqxx/pqxx>

#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::postgres {

// What goes over the wire; Postgres casts it to the column's own type (bigint to integer).
enum class ColumnType : uint8_t { kText, kNumber, kFlag, kBytes, kJson };

struct ColumnSpec {
  const char* name = "";
  ColumnType type = ColumnType::kText;
  bool key = false;
  bool once = false;
  const char* expression = nullptr;
  bool shared = false;
  bool computed = false;
};

// A column that has the same value in all rows of a statement, and that no row holds.
inline ColumnSpec Shared(const char* name) {
  return {.name = name, .shared = true};
}
inline ColumnSpec SharedKey(const char* name) {
  return {.name = name, .key = true, .shared = true};
}

template <typename Row>
struct Column {
  ColumnSpec spec;
  void (*put)(const Row& row, ArrayText* values) = nullptr;
  // Throws on a value that this version does not know. Null: it is never read.
  void (*take)(const pqxx::field& field, Row* row) = nullptr;

  // Of the primary key: rows that agree in it are the same row.
  Column Key() const;
  // Written with a row that is not there yet, and never after.
  Column Once() const;
  // This SQL is written; `r` is the row that is given: "nullif(r.start_ms, 0)".
  Column As(const char* expression) const;
};

// A column that is SQL alone: "now()". Not read.
template <typename Row>
Column<Row> Computed(const char* name, const char* expression) {
  return {.spec = {.name = name, .expression = expression, .computed = true}};
}

// A member, or a member of a member, as text, number or flag; an optional one may be NULL.
template <auto First, auto... Rest>
auto Field(const char* name);
// The same of a std::string that holds bytes.
template <auto First, auto... Rest>
auto Blob(const char* name);

// What becomes of a row whose key is there already.
enum class Conflict : uint8_t {
  kUpdate,  // all but the key and what is written once is as given
  kKeep,    // it stays as it is
  kFail,    // the statement fails
};

// The SQL of a table, and its execution; what of it does not depend on the rows' type.
class TableSql {
 public:
  TableSql(const char* table, std::vector<ColumnSpec> columns, Conflict conflict, const char* when);

  std::string Select(std::string_view tail) const;
  const std::string& write() const { return write_; }
  const std::string& remove() const { return remove_; }

 protected:
  // `parameters`: the shared values, then an array for each column that is given.
  void Write(pqxx::transaction_base& tx, const std::vector<std::string>& parameters) const;
  // The same of the key's.
  void Delete(pqxx::transaction_base& tx, const std::vector<std::string>& parameters) const;
  // Of the shared values those that are of the key.
  std::vector<std::string> KeysOf(const std::vector<std::string>& shared) const;

 private:
  std::string WriteText(const char* table, Conflict conflict, const char* when) const;
  std::string DeleteText(const char* table) const;

  std::vector<ColumnSpec> columns_;
  std::string table_;
  std::string write_name_;
  std::string write_;
  std::string delete_name_;
  std::string remove_;
};

template <typename Row>
class Table : public TableSql {
 public:
  // `table`: with its schema. `when`: SQL that has to hold for an update, of the row there (`t`)
  // and the one that is given (`excluded`); null: none has to.
  Table(const char* table,
        const std::vector<ColumnSpec>& shared,
        std::vector<Column<Row>> columns,
        Conflict conflict = Conflict::kUpdate,
        const char* when = nullptr)
      : TableSql(table, Specs(shared, columns), conflict, when), columns_(std::move(columns)) {}

  // The shared values in the order of their columns, texts or numbers. Returns how many rows.
  // REQUIRES: no two rows have the same key.
  template <typename... Values>
  size_t Write(pqxx::transaction_base& tx,
               const std::vector<Row>& rows,
               const Values&... shared) const {
    if (!rows.empty()) TableSql::Write(tx, Parameters(rows, /*keys=*/false, {ToText(shared)...}));
    return rows.size();
  }
  // Those with the keys of these rows, of which nothing else counts.
  template <typename... Values>
  size_t Delete(pqxx::transaction_base& tx,
                const std::vector<Row>& rows,
                const Values&... shared) const {
    if (!rows.empty()) {
      TableSql::Delete(tx, Parameters(rows, /*keys=*/true, KeysOf({ToText(shared)...})));
    }
    return rows.size();
  }

  // Of the result of Select: its first columns are the table's that rows hold.
  Row Read(const pqxx::row& columns) const {
    Row row;
    int at = 0;
    for (const Column<Row>& column : columns_) {
      if (!column.spec.computed) column.take(columns[at++], &row);
    }
    return row;
  }
  std::vector<Row> Read(const pqxx::result& result) const {
    std::vector<Row> rows;
    rows.reserve(result.size());
    for (const pqxx::row& columns : result) rows.push_back(Read(columns));
    return rows;
  }

 private:
  static std::string ToText(std::string_view text) { return std::string(text); }
  static std::string ToText(std::integral auto number) { return std::to_string(number); }
  static std::vector<ColumnSpec> Specs(std::vector<ColumnSpec> specs,
                                       const std::vector<Column<Row>>& columns) {
    for (const Column<Row>& column : columns) specs.push_back(column.spec);
    return specs;
  }
  std::vector<std::string> Parameters(const std::vector<Row>& rows,
                                      bool keys,
                                      std::vector<std::string> parameters) const {
    for (const Column<Row>& column : columns_) {
      if (column.spec.computed || (keys && !column.spec.key)) continue;
      ArrayText values;
      for (const Row& row : rows) column.put(row, &values);
      parameters.push_back(values.text());
    }
    return parameters;
  }

  std::vector<Column<Row>> columns_;
};

// ------------------------------------------------------------------------------------- inline

template <typename Row>
Column<Row> Column<Row>::Key() const {
  Column column = *this;
  column.spec.key = true;
  return column;
}

template <typename Row>
Column<Row> Column<Row>::Once() const {
  Column column = *this;
  column.spec.once = true;
  return column;
}

template <typename Row>
Column<Row> Column<Row>::As(const char* expression) const {
  Column column = *this;
  column.spec.expression = expression;
  return column;
}

namespace table_internal {

template <typename Owner, typename Value>
Owner OwnerOf(Value Owner::*);

template <auto First, auto... Rest>
auto& In(auto& row) {
  if constexpr (sizeof...(Rest) == 0) {
    return row.*First;
  } else {
    return In<Rest...>(row.*First);
  }
}

template <typename Value>
inline constexpr bool kIsOptional = false;
template <typename Value>
inline constexpr bool kIsOptional<std::optional<Value>> = true;

template <typename Value>
constexpr ColumnType TypeOf() {
  if constexpr (kIsOptional<Value>) {
    return TypeOf<typename Value::value_type>();
  } else if constexpr (std::is_same_v<Value, bool>) {
    return ColumnType::kFlag;
  } else if constexpr (std::is_integral_v<Value>) {
    return ColumnType::kNumber;
  } else {
    static_assert(std::is_same_v<Value, std::string>);
    return ColumnType::kText;
  }
}

template <typename Value>
void Put(const Value& value, ArrayText* values) {
  if constexpr (kIsOptional<Value>) {
    if (!value.has_value()) return values->AddNull();
    Put(*value, values);
  } else if constexpr (std::is_same_v<Value, bool>) {
    values->AddFlag(value);
  } else if constexpr (std::is_integral_v<Value>) {
    values->AddNumber(static_cast<int64_t>(value));
  } else {
    values->AddText(value);
  }
}

template <typename Value>
void Take(const pqxx::field& field, Value* value) {
  if constexpr (kIsOptional<Value>) {
    if (!field.is_null()) Take(field, &value->emplace());
  } else if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
    *value = static_cast<Value>(field.as<int64_t>());
  } else {
    *value = field.as<Value>();
  }
}

}  // namespace table_internal

template <auto First, auto... Rest>
auto Field(const char* name) {
  using Row = decltype(table_internal::OwnerOf(First));
  using Value =
      std::remove_cvref_t<decltype(table_internal::In<First, Rest...>(std::declval<Row&>()))>;
  return Column<Row>{.spec = {.name = name, .type = table_internal::TypeOf<Value>()},
                     .put =
                         [](const Row& row, ArrayText* values) {
                           table_internal::Put(table_internal::In<First, Rest...>(row), values);
                         },
                     .take =
                         [](const pqxx::field& field, Row* row) {
                           table_internal::Take(field, &table_internal::In<First, Rest...>(*row));
                         }};
}

template <auto First, auto... Rest>
auto Blob(const char* name) {
  using Row = decltype(table_internal::OwnerOf(First));
  return Column<Row>{
      .spec = {.name = name, .type = ColumnType::kBytes},
      .put = [](const Row& row,
                ArrayText* values) { values->AddBytes(table_internal::In<First, Rest...>(row)); },
      .take =
          [](const pqxx::field& field, Row* row) {
            table_internal::In<First, Rest...>(*row) = pqxx::binarystring(field).str();
          }};
}

}  // namespace fluxqueue::postgres
