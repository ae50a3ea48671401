// The thief of a service's account in Postgres: in a real one, with the roles that roles.sql makes
// and the tables of the real services. That the services do their work with these roles is shown by
// all of tests/e2e, whose systems have them.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/grants.h"
#include "libs/postgres/migrations.h"
#include "libs/testing/mini_postgres.h"
#include "libs/testing/shell.h"
#include "services/queue/adapters/attempt_store.h"

#include "admission_migrations.h"
#include "binder_migrations.h"
#include "matcher_migrations.h"
#include "queue_migrations.h"

namespace fluxqueue {
namespace {

using postgres::RoleOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

const std::vector<std::string> kServices = {"admission", "queue", "matcher", "binder", "cleanup"};
constexpr const char* kRolesSql = FLUXQUEUE_SOURCE_DIR "/deploy/helm/fluxqueue/files/roles.sql";

class PostgresAccountsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    postgres_ = new testing::MiniPostgres;
    postgres_->MakeRoles();
    for (const std::string& service : kServices) {
      Must(Migrate(postgres_->dsn_of(service), service));
    }
    // As in a new month: a table that no migration has made.
    postgres::Connection queue(Options(postgres_->dsn_of("queue"), "queue"));
    Must(queue.Transact([](pqxx::transaction_base& tx) {
      queue::MakeMonths(tx, {model::MonthOf(1'700'000'000'000)});
      return absl::OkStatus();
    }));
  }
  static void TearDownTestSuite() { delete std::exchange(postgres_, nullptr); }

  static void Must(const absl::Status& status) { CHECK(status.ok(), "{}", Message(status)); }

  static postgres::Options Options(const std::string& dsn, const std::string& schema) {
    return {.dsn = dsn, .application = "test", .schema = schema};
  }

  static absl::Status Migrate(const std::string& dsn, const std::string& service) {
    std::vector<const postgres::MigrationSet*> sets = {&delivery::Migrations()};
    if (service == "admission") sets.push_back(&migrations::admission());
    if (service == "queue") sets.push_back(&migrations::queue());
    if (service == "matcher") sets.push_back(&migrations::matcher());
    if (service == "binder") sets.push_back(&migrations::binder());
    postgres::Connection connection(Options(dsn, service));
    return postgres::Migrate(connection, service, sets);
  }

  static absl::Status Try(const std::string& dsn, const std::string& sql) {
    postgres::Connection connection(Options(dsn, "public"));
    return connection.Query([&](pqxx::transaction_base& tx) {
      tx.exec(sql);
      return absl::OkStatus();
    });
  }

  // The first column.
  static std::vector<std::string> Column(const std::string& dsn, const std::string& sql) {
    postgres::Connection connection(Options(dsn, "public"));
    std::vector<std::string> values;
    Must(connection.Query([&](pqxx::transaction_base& tx) {
      for (const pqxx::row& row : tx.exec(sql)) values.emplace_back(row[0].c_str());
      return absl::OkStatus();
    }));
    return values;
  }

  static void Refused(const std::string& account, const std::string& sql) {
    const absl::Status status = Try(postgres_->dsn_of(account), sql);
    EXPECT_FALSE(status.ok()) << account << ": " << sql;
    EXPECT_THAT(Message(status), AnyOf(HasSubstr("permission denied"), HasSubstr("must be ")))
        << account << ": " << sql;
  }

  static std::vector<std::string> Accounts() {
    std::vector<std::string> accounts = kServices;
    accounts.emplace_back("graph");
    accounts.emplace_back("cli");
    return accounts;
  }

  static inline testing::MiniPostgres* postgres_ = nullptr;
};

// All roles may take advisory locks, and read locks of what they may read.
TEST_F(PostgresAccountsTest, NobodyElseKeepsAServiceFromStarting) {
  postgres::Connection thief(Options(postgres_->dsn_of("cli"), "public"));
  Must(thief.Transact([](pqxx::transaction_base& tx) {
    tx.exec(
        "SELECT pg_advisory_lock(hashtext('fluxqueue.migrations')), "
        "pg_advisory_lock(x'466c7578417474'::bigint)");
    for (const std::string& service : kServices) {
      tx.exec(fmt::format("LOCK TABLE {0}.migrations, {0}.inbox IN ACCESS SHARE MODE", service));
    }
    for (const std::string& service : kServices) {
      EXPECT_TRUE(Migrate(postgres_->dsn_of(service), service).ok()) << service;
    }
    postgres::Connection queue(Options(postgres_->dsn_of("queue"), "queue"));
    const absl::Status months = queue.Transact([](pqxx::transaction_base& own) {
      queue::MakeMonths(own, {model::MonthOf(1'900'000'000'000)});
      return absl::OkStatus();
    });
    EXPECT_TRUE(months.ok()) << months;
    return absl::OkStatus();
  }));
  for (const char* mode : {"ROW SHARE", "SHARE ROW EXCLUSIVE", "ACCESS EXCLUSIVE"}) {
    Refused("cli", fmt::format("BEGIN; LOCK TABLE queue.migrations IN {} MODE", mode));
  }
  Refused("cli", "SELECT FROM queue.migrations FOR UPDATE");
}

// What the catalog says that each role has, and what the list says, for each table: also for the
// months of accounting, and for tables that a later migration makes.
TEST_F(PostgresAccountsTest, HaveTheRightsOfTheListAndNoOthers) {
  const std::vector<std::string> has = Column(
      postgres_->dsn_of("postgres"),
      "WITH tables AS (SELECT c.oid, nspname || '.' || relname AS name, a, 'fluxqueue_' || a AS "
      "role "
      "  FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace, "
      "    unnest('{admission,queue,matcher,binder,cleanup,graph,cli}'::text[]) a "
      "  WHERE relkind IN ('r', 'p') AND nspname !~ '^(pg_|information_schema)' AND nspname <> a) "
      "SELECT a || ' ' || name || ' ' || p FROM tables, "
      "  unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) p "
      "WHERE has_table_privilege(role, oid, p) "
      "UNION ALL SELECT format('%s %s %s (%s)', a, name, p, attname) FROM tables "
      "  JOIN pg_attribute ON attrelid = oid AND attnum > 0, "
      "  unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) p "
      "WHERE has_column_privilege(role, oid, attnum, p) AND NOT has_table_privilege(role, oid, p)");
  std::vector<std::string> listed;
  for (const std::string& table :
       Column(postgres_->dsn_of("postgres"),
              "SELECT schemaname || '.' || tablename FROM pg_tables "
              "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')")) {
    for (const postgres::Grant& grant : postgres::Grants()) {
      const std::string schema = std::string(grant.schema) + ".";
      if (table == schema + std::string(grant.table) ||
          (grant.table == "*" && table.starts_with(schema))) {
        listed.push_back(
            fmt::format("{} {} {}", std::string(grant.account), table, std::string(grant.right)));
      }
    }
  }
  EXPECT_THAT(has, UnorderedElementsAreArray(listed));
  EXPECT_THAT(listed, Contains("cli queue.attempts_2023_11 SELECT"));
}

TEST_F(PostgresAccountsTest, OfOneServiceDoNothingToAnother) {
  for (const std::string& account : Accounts()) {
    for (const std::string& owner : kServices) {
      if (owner == account) continue;
      Refused(account,
              fmt::format("INSERT INTO {}.inbox (partition, holder, epoch) "
                          "VALUES (0, 'thief', 99)",
                          owner));
      Refused(account, fmt::format("UPDATE {}.outbox SET blob = ''", owner));
      Refused(account, fmt::format("DELETE FROM {}.leases", owner));
      Refused(account, fmt::format("TRUNCATE {}.migrations", owner));
      Refused(account, fmt::format("DROP TABLE {}.inbox", owner));
      Refused(account, fmt::format("ALTER TABLE {}.inbox DISABLE TRIGGER ALL", owner));
      Refused(account, fmt::format("CREATE TABLE {}.mine ()", owner));
      Refused(account, fmt::format("DROP SCHEMA {} CASCADE", owner));
      Refused(account, fmt::format("SET ROLE {}", RoleOf(owner)));
      Refused(account, fmt::format("ALTER ROLE {} PASSWORD 'mine'", RoleOf(owner)));
      if (account != "cli") Refused(account, fmt::format("SELECT * FROM {}.outbox", owner));
    }
    for (const char* sql : {"CREATE SCHEMA mine",
                            "CREATE TABLE public.mine ()",
                            "CREATE ROLE mine",
                            "CREATE DATABASE mine",
                            "CREATE EXTENSION file_fdw",
                            "COPY (SELECT 1) TO PROGRAM 'true'",
                            "COPY (SELECT 1) TO '/tmp/mine'",
                            "SELECT pg_read_file('postgresql.conf')",
                            "ALTER SYSTEM SET max_connections = 1",
                            "SET ROLE fluxqueue",
                            "SELECT * FROM pg_authid"}) {
      Refused(account, sql);
    }
  }
}

TEST_F(PostgresAccountsTest, OfTheCommandLineMarksARetryAndNothingElse) {
  for (const char* owner : {"admission", "cleanup"}) {
    const absl::Status marked =
        Try(postgres_->dsn_of("cli"),
            fmt::format("UPDATE {}.quarantine SET retry = true WHERE uid = 'x'", owner));
    EXPECT_TRUE(marked.ok()) << Message(marked);
    Refused("cli", fmt::format("UPDATE {}.quarantine SET held = false", owner));
    Refused("cli", fmt::format("DELETE FROM {}.quarantine", owner));
  }
  for (const char* reader : {"binder", "matcher", "queue"}) {
    const absl::Status skipped =
        Try(postgres_->dsn_of("cli"),
            fmt::format("INSERT INTO {}.skips VALUES (0, 7, session_user, 'x')", reader));
    EXPECT_TRUE(skipped.ok()) << Message(skipped);
    Refused("cli", fmt::format("DELETE FROM {}.skips", reader));
  }
  Refused("cli", "UPDATE queue.jobs SET state = 'Cancelled'");
}

TEST_F(PostgresAccountsTest, LoseWhatIsNotListedAndGetWhatIsWithTheOwnersNextStart) {
  const std::string queue = postgres_->dsn_of("queue");
  Must(Try(queue,
           "GRANT DELETE ON queue.jobs TO fluxqueue_binder;"
           "GRANT UPDATE (state) ON queue.jobs TO fluxqueue_cleanup;"
           "GRANT CREATE ON SCHEMA queue TO fluxqueue_cleanup;"
           "REVOKE SELECT ON queue.jobs FROM fluxqueue_cleanup, fluxqueue_cli;"
           "CREATE TABLE queue.of_a_migration ()"));
  Must(Migrate(queue, "queue"));
  Refused("binder", "DELETE FROM queue.jobs");
  Refused("cleanup", "UPDATE queue.jobs SET state = 'Failed'");
  Refused("cleanup", "CREATE TABLE queue.mine ()");
  EXPECT_TRUE(Try(postgres_->dsn_of("cleanup"), "SELECT * FROM queue.jobs").ok());
  EXPECT_TRUE(Try(postgres_->dsn_of("cli"), "SELECT * FROM queue.jobs, queue.of_a_migration").ok());
  Must(Try(queue, "DROP TABLE queue.of_a_migration"));
}

TEST_F(PostgresAccountsTest, AreToldWhenTheSchemaIsNotTheirs) {
  const absl::Status others = Migrate(postgres_->dsn_of("binder"), "queue");
  EXPECT_TRUE(absl::IsFailedPrecondition(others)) << others;
  EXPECT_THAT(Message(others),
              HasSubstr("the schema queue is of fluxqueue_queue, and fluxqueue_binder may not "
                        "migrate it"));
  Must(Try(postgres_->dsn_of("postgres"), "CREATE DATABASE empty"));
  std::string dsn = postgres_->dsn_of("binder");
  const absl::Status none = Migrate(dsn.replace(dsn.rfind("fluxqueue"), 9, "empty"), "binder");
  EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none;
  EXPECT_THAT(Message(none), HasSubstr("CREATE on the database empty"));
}

// An installation from before: what one account has made passes to the new ones while that account
// goes on, and then to nobody else.
TEST_F(PostgresAccountsTest, TakeOverWhatTheSharedOneHasMade) {
  const std::string root = postgres_->dsn_of("postgres");
  // No superuser: as where Postgres is a provider's.
  Must(Try(root,
           "CREATE ROLE shared LOGIN; CREATE ROLE administrator LOGIN CREATEROLE IN ROLE shared"));
  Must(Try(root, "CREATE DATABASE before OWNER administrator"));
  const auto dsn = [&](const std::string& role) {
    const std::string all = postgres_->dsn();
    return "postgresql://" + role + all.substr(all.find('@'), all.rfind('/') - all.find('@')) +
           "/before";
  };
  Must(Try(dsn("administrator"), "GRANT CREATE ON DATABASE before TO shared"));
  for (const std::string& service : kServices) Must(Migrate(dsn("shared"), service));
  Must(Try(dsn("shared"), "INSERT INTO admission.pools VALUES ('default', 3, '')"));
  std::string revokes;
  for (int i = 0; i < 2; ++i) {
    const auto made = testing::Run(fmt::format(
        "psql -qXAt -v ON_ERROR_STOP=1 -f {} {} 2>&1", kRolesSql, dsn("administrator")));
    ASSERT_TRUE(made.ok()) << Message(made.status());
    revokes = *made;
  }
  EXPECT_THAT(Column(dsn("postgres"),
                     "SELECT n.nspname || '.' || o.name || ' of ' || o.owner FROM pg_namespace n, "
                     "LATERAL (SELECT relname, pg_get_userbyid(relowner) FROM pg_class "
                     "  WHERE relnamespace = n.oid "
                     "  UNION ALL SELECT proname, pg_get_userbyid(proowner) FROM pg_proc "
                     "  WHERE pronamespace = n.oid "
                     "  UNION ALL SELECT '', pg_get_userbyid(n.nspowner)) AS o (name, owner) "
                     "WHERE n.nspname IN ('admission', 'queue', 'matcher', 'binder', 'cleanup') "
                     "AND o.owner <> 'fluxqueue_' || n.nspname"),
              IsEmpty());
  EXPECT_TRUE(Migrate(dsn("shared"), "queue").ok());
  for (const std::string& service : kServices) Must(Migrate(dsn(RoleOf(service)), service));
  EXPECT_TRUE(Try(dsn("fluxqueue_binder"), "SELECT 1 / (partition - 2) FROM admission.pools").ok());
  // What the script says that ends it.
  Must(Try(root, revokes));
  EXPECT_THAT(Message(Try(dsn("shared"), "SELECT * FROM admission.pools")),
              HasSubstr("permission denied for schema admission"));
}

std::string SourceOf(const std::filesystem::path& folder) {
  std::string text;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = file.path().filename();
    if (!name.ends_with(".cc") || name.find("test") != std::string::npos) continue;
    std::ifstream in(file.path());
    text.append(std::istreambuf_iterator<char>(in), {});
  }
  return text;
}

// What the services' sources name of each other's tables is listed, and all that is listed is
// named.
TEST_F(PostgresAccountsTest, ReadWhatIsListedAndNothingElseIs) {
  // In a statement, or as the name of a postgres::Table.
  static const std::regex kOthers(
      R"re((?:\b(?:from|join|into|update)\s+|"(?=\w+\.\w+"))(admission|queue|matcher|binder|cleanup)\.(\w+))re",
      std::regex::icase);
  std::set<std::string> named;
  const auto read = [&](const std::string& account, const std::string& text) {
    for (std::sregex_iterator found(text.begin(), text.end(), kOthers), end; found != end;
         ++found) {
      if ((*found)[1] == account) continue;
      named.insert(fmt::format("{} {}.{}", account, (*found)[1].str(), (*found)[2].str()));
    }
  };
  for (const std::string& service : kServices) {
    read(service, SourceOf(FLUXQUEUE_SOURCE_DIR "/services/" + service));
  }
  // The queue answers people from it; the graph service asks it for a holder (libs/peers) and
  // nothing else.
  const std::string store = SourceOf(FLUXQUEUE_SOURCE_DIR "/libs/job_store");
  const std::string holder = "kHolder{";
  const size_t at = store.find(holder);
  ASSERT_NE(at, std::string::npos);
  read("graph", store.substr(at, store.find("};", at) - at));
  read("queue", store);
  read("graph", SourceOf(FLUXQUEUE_SOURCE_DIR "/libs/matcher_rows"));
  // These the matcher alone asks for, about itself (LoadPools).
  named.erase("graph matcher.specs");
  named.erase("graph matcher.answers");
  std::set<std::string> listed;
  for (const postgres::Grant& grant : postgres::Grants()) {
    if (grant.account == "cli") continue;
    listed.insert(fmt::format("{} {}.{}",
                              std::string(grant.account),
                              std::string(grant.schema),
                              std::string(grant.table)));
  }
  EXPECT_EQ(named, listed);
}

}  // namespace
}  // namespace fluxqueue
