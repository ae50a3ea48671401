#include "tools/fluxqueue/place_factors.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/job_call.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {

using nlohmann::json;

absl::StatusOr<int> ShowFactors(const Context& context, const std::string& wanted) {
  ASSIGN_OR_RETURN(const JobCall reached, ReachJob(context, wanted));
  const job_store::Job& job = reached.job;
  grpc::ClientContext call;
  Prepare(&call, job.id);
  queue::v1::ExplainRequest request;
  request.set_job_id(job.id);
  queue::v1::ExplainResponse answer;
  RETURN_IF_ERROR(ToStatus(reached.stub->Explain(&call, request, &answer), job));
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
