#include "libs/postgres/connection.h"

#include <memory>
#include <string>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/postgres/dsn.h"

namespace fluxqueue::postgres {

// The handler keeps the server's notices away from stderr; it must go before its connection does.
struct Connection::Session {
  explicit Session(const std::string& dsn) : connection(dsn), quiet(connection) {
    // A connection made anew by libpqxx behind our back would have none of our settings.
    // (Deprecated because libpqxx 7 never does it.)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    connection.inhibit_reactivation(true);
#pragma GCC diagnostic pop
  }

  pqxx::connection connection;
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
    auto session = std::make_unique<Session>(DsnToConnect(options_.dsn, options_.connect_timeout));
    pqxx::connection& connection = session->connection;
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

absl::Status Connection::Run(const std::function<absl::Status(pqxx::connection&)>& body) {
  if (session_ == nullptr) RETURN_IF_ERROR(Open());
  absl::Status status;
  try {
    status = body(session_->connection);
  } catch (const std::exception& error) {
    status = FromException(error, server_);
  }
  if (!status.ok() && !session_->connection.is_open()) {
    session_.reset();
    // Whatever libpqxx called it: with the connection gone, the next try gets a new one.
    if (absl::IsInternal(status)) status = Unavailable("{}", Message(status));
  }
  return status;
}

absl::Status Connection::Transact(const Work& work) {
  return Run([&](pqxx::connection& connection) -> absl::Status {
    pqxx::work tx(connection);
    RETURN_IF_ERROR(work(tx));
    tx.commit();
    return absl::OkStatus();
  });
}

absl::Status Connection::Transact(const Limits& limits, const Work& work) {
  return Transact([&](pqxx::transaction_base& tx) {
    tx.exec(
        fmt::format("SET LOCAL statement_timeout = {}; "
                    "SET LOCAL idle_in_transaction_session_timeout = {}",
                    limits.statement_timeout.count(),
                    limits.idle_in_transaction_timeout.count()));
    return work(tx);
  });
}

absl::Status Connection::Query(const Work& work) {
  return Run([&](pqxx::connection& connection) -> absl::Status {
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
