#include "tools/fluxqueue/pipeline_view.h"

#include "libs/base/status_macros.h"
#include "libs/kafka/topics.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::cli {
namespace {

constexpr postgres::Statement kInboxes{
    "cli_inboxes",
    "SELECT 'queue', partition, holder, next_offset FROM queue.inbox UNION ALL "
    "SELECT 'matcher', partition, holder, next_offset FROM matcher.inbox UNION ALL "
    "SELECT 'binder', partition, holder, next_offset FROM binder.inbox ORDER BY 1, 2"};
constexpr postgres::Statement kOutboxes{
    "cli_outboxes",
    "SELECT 'admission', coalesce(sum(count), 0) FROM admission.outbox UNION ALL "
    "SELECT 'queue', coalesce(sum(count), 0) FROM queue.outbox UNION ALL "
    "SELECT 'matcher', coalesce(sum(count), 0) FROM matcher.outbox UNION ALL "
    "SELECT 'binder', coalesce(sum(count), 0) FROM binder.outbox UNION ALL "
    "SELECT 'cleanup', coalesce(sum(count), 0) FROM cleanup.outbox"};

}  // namespace

absl::StatusOr<PipelineView> ReadPipeline(postgres::Connection& connection, kafka::Admin& admin) {
  const kafka::TopicNames names;
  PipelineView view;
  std::vector<int64_t> next;
  RETURN_IF_ERROR(connection.Query([&](pqxx::transaction_base& tx) {
    for (const pqxx::row& row : postgres::Exec(tx, kInboxes)) {
      const auto service = row[0].as<std::string>();
      view.consumers.push_back({.service = service,
                                .topic = service == "binder" ? names.jobs : names.pool,
                                .partition = row[1].as<int>(),
                                .holder = row[2].as<std::string>()});
      next.push_back(row[3].as<int64_t>());
    }
    for (const pqxx::row& row : postgres::Exec(tx, kOutboxes)) {
      view.outboxes.push_back({row[0].as<std::string>(), row[1].as<int64_t>()});
    }
    return absl::OkStatus();
  }));
  for (size_t i = 0; i < view.consumers.size(); ++i) {
    ConsumerLag& consumer = view.consumers[i];
    ASSIGN_OR_RETURN(const kafka::Watermarks marks,
                     admin.QueryWatermarks(consumer.topic, consumer.partition));
    consumer.lag = std::max<int64_t>(0, marks.high - next[i]);
  }
  return view;
}

}  // namespace fluxqueue::cli
