// The tables of the schema `matcher` that hold the core's rows. Thread-safe.
#pragma once

#include "libs/matcher_core/rows.h"
#include "libs/postgres/table.h"

namespace fluxqueue::matcher_rows {

// All have the pool as their shared value. `released_at` follows from `released`.
const postgres::Table<matcher_core::AllocationRow>& Allocations();
const postgres::Table<matcher_core::NodeRow>& Nodes();
const postgres::Table<matcher_core::SpecRow>& Specs();
const postgres::Table<matcher_core::ReservationRow>& Reservations();
const postgres::Table<matcher_core::AnswerRow>& Answers();

}  // namespace fluxqueue::matcher_rows
