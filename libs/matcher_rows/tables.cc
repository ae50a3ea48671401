#include "libs/matcher_rows/tables.h"

namespace fluxqueue::matcher_rows {

using matcher_core::AllocationKey;
using matcher_core::AllocationRow;
using matcher_core::AnswerRow;
using matcher_core::NodeRow;
using matcher_core::ReservationRow;
using matcher_core::SpecRow;
using postgres::Blob;
using postgres::Field;
using postgres::Shared;
using postgres::SharedKey;
using postgres::Table;

const Table<AllocationRow>& Allocations() {
  static const Table<AllocationRow> table(
      "matcher.allocations",
      {Shared("pool")},
      {Field<&AllocationRow::key, &AllocationKey::job_id>("job_id").Key(),
       Field<&AllocationRow::key, &AllocationKey::attempt>("attempt").Key(),
       Field<&AllocationRow::key, &AllocationKey::part>("part").Key(),
       Blob<&AllocationRow::placement>("placement"),
       Field<&AllocationRow::placement_hash>("placement_hash"),
       Field<&AllocationRow::released>("released"),
       postgres::Computed<AllocationRow>("released_at", "CASE WHEN r.released THEN now() END")});
  return table;
}

const Table<NodeRow>& Nodes() {
  static const Table<NodeRow> table("matcher.graph_nodes",
                                    {SharedKey("pool")},
                                    {Field<&NodeRow::name>("name").Key(),
                                     Field<&NodeRow::uid>("uid"),
                                     Field<&NodeRow::ordinal>("ordinal"),
                                     Blob<&NodeRow::node>("node"),
                                     Field<&NodeRow::present>("present")});
  return table;
}

const Table<SpecRow>& Specs() {
  static const Table<SpecRow> table("matcher.specs",
                                    {Shared("pool")},
                                    {Field<&SpecRow::job_id>("job_id").Key(),
                                     Field<&SpecRow::part>("part").Key(),
                                     Field<&SpecRow::revision>("revision"),
                                     Field<&SpecRow::slots>("slots"),
                                     Field<&SpecRow::jobspec>("jobspec")});
  return table;
}

const Table<ReservationRow>& Reservations() {
  static const Table<ReservationRow> table(
      "matcher.reservations",
      {Shared("pool")},
      {Field<&ReservationRow::key, &AllocationKey::job_id>("job_id").Key(),
       Field<&ReservationRow::key, &AllocationKey::attempt>("attempt").Key(),
       Field<&ReservationRow::key, &AllocationKey::part>("part").Key(),
       Blob<&ReservationRow::placement>("placement")});
  return table;
}

const Table<AnswerRow>& Answers() {
  static const Table<AnswerRow> table(
      "matcher.answers",
      {SharedKey("pool")},
      {Field<&AnswerRow::cycle_id>("cycle_id").Key(), Blob<&AnswerRow::answer>("answer")});
  return table;
}

}  // namespace fluxqueue::matcher_rows
