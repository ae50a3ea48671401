// A report over accounting: for eyes, for programs, for spreadsheets. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "libs/job_store/attempt_store.h"

namespace fluxqueue::cli {

// "user", "queue", "namespace", "month": what --by takes.
std::string_view NameOf(job_store::ReportKey key);

using ReportRows = std::vector<job_store::ReportRow>;

// With a row of sums behind the others. REQUIRES: `rows` is not empty.
std::string ReportTable(const job_store::ReportQuery& query, const ReportRows& rows, bool colour);
nlohmann::json ReportJson(const job_store::ReportQuery& query, const ReportRows& rows);
// RFC 4180, with a header; lines end in LF.
std::string ReportCsv(const job_store::ReportQuery& query, const ReportRows& rows);

}  // namespace fluxqueue::cli
