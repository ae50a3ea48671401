#include "tools/fluxqueue/place_factors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/job_call.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {

using nlohmann::json;

absl::StatusOr<int> ShowFactors(const Context& context, const std::string& wanted) {
  ASSIGN_OR_RETURN(const std::unique_ptr<JobCall> reached, ReachJob(context, wanted));
  const job_store::Job& job = reached->job();
  ASSIGN_OR_RETURN(const queue::v1::ExplainResponse answer, reached->Explain());
  if (context.structured()) {
    json factors = json::array();
    for (const auto& factor : answer.factors()) {
      factors.push_back(
          {{"factor", factor.factor()}, {"of", factor.of()}, {"value", factor.value()}});
    }
    fmt::print("{}",
               context.Structured({{"jobId", job.id},
                                   {"position", answer.position()},
                                   {"inLine", answer.in_line()},
                                   {"factors", std::move(factors)}}));
    return 0;
  }
  if (answer.factors().empty()) {
    fmt::print("{} ({}) is {}: not in line\n", job.FullName(), job.id, job.state);
    return 0;
  }
  fmt::print("{} ({}) is number {} of {}. What decides, in this order:\n\n",
             job.FullName(),
             job.id,
             answer.position(),
             answer.in_line());
  Table table({"FACTOR", "OF", "VALUE"});
  for (const auto& factor : answer.factors()) {
    table.Add({factor.factor(), factor.of().empty() ? "-" : factor.of(), factor.value()});
  }
  fmt::print("{}", table.Render(context.colour));
  return 0;
}

}  // namespace fluxqueue::cli
