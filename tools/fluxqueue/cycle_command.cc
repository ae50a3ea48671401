// cycle abandon: a pool that waits for an answer of which nothing comes goes on without it.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/job_call.h"

namespace fluxqueue::cli {
namespace {

absl::StatusOr<int> Abandon(const Context& context, const std::string& pool, uint64_t cycle_id) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  ASSIGN_OR_RETURN(const auto stub, ReachPool(config, pool));
  grpc::ClientContext call;
  Prepare(&call, /*job_id=*/"");
  queue::v1::AbandonCycleRequest request;
  request.set_pool(pool);
  request.set_cycle_id(cycle_id);
  queue::v1::AbandonCycleResponse response;
  const grpc::Status status = stub->AbandonCycle(&call, request, &response);
  if (!status.ok()) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition, "pool {}: {}", pool, status.error_message());
  }
  fmt::print("pool {}: cycle {} is abandoned\n", pool, response.cycle_id());
  return 0;
}

}  // namespace

void RegisterCycle(CLI::App& app, Context& context) {
  CLI::App* group =
      app.add_subcommand("cycle", "The scheduling cycle that a pool waits for: abandon");
  group->group("Operation");
  group->require_subcommand(1);
  CLI::App* sub = group->add_subcommand("abandon", "Close it as if no job had been tried");
  const auto pool = std::make_shared<std::string>();
  const auto cycle_id = std::make_shared<uint64_t>(0);
  sub->add_option("POOL", *pool, "The pool that it is of")->required()->type_name("POOL");
  sub->add_option("--cycle", *cycle_id, "Only if it is this one that waits")->type_name("ID");
  sub->footer(
      "For a pool in which nothing starts as the answer to its cycle never comes, or cannot be "
      "taken. Its jobs are\n"
      "tried again at once, apart from all others and half as many at a time; one that stands "
      "alone "
      "in a cycle that is\n"
      "abandoned waits for ten minutes. The queue does so by itself where an answer became a dead "
      "letter.");
  sub->callback([&context, pool, cycle_id] {
    context.command = [&context, pool, cycle_id] { return Abandon(context, *pool, *cycle_id); };
  });
}

}  // namespace fluxqueue::cli
