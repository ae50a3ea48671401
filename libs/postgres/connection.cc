#include "libs/postgres/connection.h"

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <libpq-events.h>
#include <libpq-fe.h>

#include "libs/base/status_macros.h"
#include "libs/postgres/answer_watch.h"
#include "libs/postgres/dsn.h"

namespace fluxqueue::postgres {
namespace {

// A little more than for what a server that is there needs at most: it ends a statement, and a
// transaction that waits for the next one, by its own timeouts.
constexpr Millis kGrace{5000};

Millis PatienceOf(const Limits& limits) {
  if (limits.answer_timeout > Millis{0}) return limits.answer_timeout;
  return limits.statement_timeout + limits.idle_in_transaction_timeout + kGrace;
}

Millis PatienceOf(const Options& options) {
  return PatienceOf(Limits{.statement_timeout = options.statement_timeout,
                           .idle_in_transaction_timeout = options.idle_in_transaction_timeout});
}

absl::Status InTransaction(pqxx::connection_base& connection, const Work& work) {
  pqxx::work tx(connection);
  RETURN_IF_ERROR(work(tx));
  tx.commit();
  return absl::OkStatus();
}

// Connects at once, and has each answer of the server noted.
class WatchedPolicy final : public pqxx::connect_direct {
 public:
  WatchedPolicy(const std::string& dsn, AnswerWatch& watch, const std::function<void()>& answered)
      : pqxx::connect_direct(dsn), watch_(watch), answered_(answered) {}

  // libpqxx calls it again once it is connected.
  handle do_startconnect(handle known) override {
    if (known != nullptr) return known;
    handle made = pqxx::connect_direct::do_startconnect(nullptr);
    try {
      if (PQregisterEventProc(made, &OnEvent, "fluxqueue", this) == 0) throw std::bad_alloc();
      watch_.Guard(PQsocket(made));
    } catch (...) {
      do_disconnect(made);
      throw;
    }
    return made;
  }

 private:
  static int OnEvent(PGEventId event, void* /*info*/, void* self) {
    if (event != PGEVT_RESULTCREATE) return 1;
    const auto* policy = static_cast<const WatchedPolicy*>(self);
    policy->watch_.Answered();
    if (policy->answered_) policy->answered_();
    return 1;
  }

  AnswerWatch& watch_;
  const std::function<void()>& answered_;
};

// What pqxx::connection is, with a policy of ours.
class PolicyConnection final : public pqxx::connection_base {
 public:
  explicit PolicyConnection(pqxx::connectionpolicy& policy) : pqxx::connection_base(policy) {
    init();
  }
  ~PolicyConnection() { close(); }
  PolicyConnection(const PolicyConnection&) = delete;
  PolicyConnection& operator=(const PolicyConnection&) = delete;
};

}  // namespace

// The handler keeps the server's notices away from stderr; it must go before its connection does,
// which tells the watch to its end.
struct Connection::Session {
  explicit Session(const Options& options)
      : watch(PatienceOf(options)),
        policy(DsnToConnect(options.dsn, options.connect_timeout), watch, options.answered),
        connection(policy),
        quiet(connection) {
    // A connection made anew by libpqxx behind our back would have none of our settings.
    // (Deprecated because libpqxx 7 never does it.)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    connection.inhibit_reactivation(true);
#pragma GCC diagnostic pop
  }

  AnswerWatch watch;
  WatchedPolicy policy;
  PolicyConnection connection;
  pqxx::quiet_errorhandler quiet;
};

Connection::Connection(Options options)
    : options_(std::move(options)), server_(DescribeDsn(options_.dsn)) {}

Connection::~Connection() = default;

void Connection::Close() {
  session_.reset();
}

absl::Status Connection::Open() {
  RETURN_IF_ERROR(CheckDsn(options_.dsn));
  try {
    auto session = std::make_unique<Session>(options_);
    const AnswerWatch::Call call(session->watch);
    pqxx::connection_base& connection = session->connection;
    pqxx::nontransaction tx(connection);
    std::string settings = fmt::format(
        "SET application_name = {}; SET statement_timeout = {}; SET lock_timeout = {}; "
        "SET idle_in_transaction_session_timeout = {};",
        connection.quote("fluxqueue-" + options_.application),
        options_.statement_timeout.count(),
        options_.lock_timeout.count(),
        options_.idle_in_transaction_timeout.count());
    settings += options_.plans == Plans::kAnew
                    ? "SET plan_cache_mode = force_custom_plan;"
                    : "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; "
                      "SET enable_hashjoin = off; SET enable_mergejoin = off;";
    if (!options_.schema.empty()) {
      settings += fmt::format("SET search_path = {};", connection.quote_name(options_.schema));
    }
    tx.exec(settings);
    session_ = std::move(session);
    return absl::OkStatus();
  } catch (const std::exception& error) {
    const absl::Status status = FromException(error, "connect to " + server_);
    return MakeStatus(status.code(), "{} (see postgres.dsn and PGPASSWORD)", Message(status));
  }
}

absl::Status Connection::Run(Millis patience,
                             const std::function<absl::Status(pqxx::connection_base&)>& body) {
  if (session_ == nullptr) RETURN_IF_ERROR(Open());
  absl::Status status;
  try {
    const AnswerWatch::Call call(session_->watch, patience);
    status = body(session_->connection);
  } catch (const std::exception& error) {
    status = FromException(error, server_);
  }
  const bool silent = session_->watch.gave_up();
  if (!silent && (status.ok() || session_->connection.is_open())) return status;
  session_.reset();
  // Whatever libpqxx called it: with the connection gone, the next try gets a new one.
  if (absl::IsInternal(status)) status = Unavailable("{}", Message(status));
  if (!silent) return status;
  return Annotate(status, fmt::format("no answer for {} s", patience.count() / 1000));
}

absl::Status Connection::Transact(const Work& work) {
  return Run(PatienceOf(options_),
             [&](pqxx::connection_base& connection) { return InTransaction(connection, work); });
}

absl::Status Connection::Transact(const Limits& limits, const Work& work) {
  return Run(PatienceOf(limits), [&](pqxx::connection_base& connection) {
    return InTransaction(connection, [&](pqxx::transaction_base& tx) {
      tx.exec(
          fmt::format("SET LOCAL statement_timeout = {}; "
                      "SET LOCAL idle_in_transaction_session_timeout = {}",
                      limits.statement_timeout.count(),
                      limits.idle_in_transaction_timeout.count()));
      return work(tx);
    });
  });
}

absl::Status Connection::Query(const Work& work) {
  return Run(PatienceOf(options_), [&](pqxx::connection_base& connection) -> absl::Status {
    pqxx::nontransaction tx(connection);
    return work(tx);
  });
}

Pool::Pool(const Options& options, size_t size) {
  for (size_t i = 0; i < size; ++i) free_.push_back(std::make_unique<Connection>(options));
}

absl::Status Pool::With(const std::function<absl::Status(Connection&)>& body) {
  std::unique_ptr<Connection> connection;
  {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return !free_.empty(); });
    connection = std::move(free_.back());
    free_.pop_back();
  }
  absl::Status status = body(*connection);
  {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(connection));
  }
  freed_.notify_one();
  return status;
}

absl::Status Pool::Transact(const Work& work) {
  return With([&](Connection& connection) { return connection.Transact(work); });
}

absl::Status Pool::Query(const Work& work) {
  return With([&](Connection& connection) { return connection.Query(work); });
}

}  // namespace fluxqueue::postgres
