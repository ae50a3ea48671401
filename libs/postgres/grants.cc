#include "libs/postgres/grants.h"

#include <fmt/format.h>

#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::postgres {
namespace {

// What is to be given and what is, as the words between GRANT and TO: $1 the schema, $2 … $4 the
// list, $5 our roles. Empty where the schema is not of its service's own role, $6: roles are the
// server's, and those of another database are no business of this one.
constexpr Statement kDifferences{
    "postgres_grant_differences",
    "WITH space AS ("
    "  SELECT oid, nspname, nspacl, nspowner FROM pg_namespace "
    "  WHERE nspname = $1::text AND pg_get_userbyid(nspowner) = $6::text), "
    "roles AS ("
    "  SELECT oid, rolname FROM pg_roles WHERE rolname = ANY($5::text[])), "
    "tables AS ("
    "  SELECT c.oid, format('%I.%I', s.nspname, c.relname) AS name, c.relname, c.relacl, "
    "c.relowner "
    "  FROM pg_class c JOIN space s ON s.oid = c.relnamespace "
    "  WHERE c.relkind IN ('r', 'p', 'v', 'm')), "
    "listed AS ("
    "  SELECT l.relname, l.words, r.rolname "
    "  FROM unnest($2::text[], $3::text[], $4::text[]) AS l(relname, role, words) "
    "  JOIN roles r ON r.rolname = l.role), "
    "wanted AS ("
    "  SELECT format('%s ON TABLE %s', l.words, t.name) AS what, l.rolname "
    "  FROM listed l JOIN tables t ON l.relname IN ('*', t.relname) "
    "  UNION SELECT format('USAGE ON SCHEMA %I', s.nspname), l.rolname FROM space s, listed l), "
    "given AS ("
    "  SELECT format('%s ON TABLE %s', a.privilege_type, t.name) AS what, r.rolname "
    "  FROM tables t, aclexplode(t.relacl) a JOIN roles r ON r.oid = a.grantee "
    "  WHERE r.oid <> t.relowner "
    "  UNION ALL "
    "  SELECT format('%s (%I) ON TABLE %s', a.privilege_type, c.attname, t.name), r.rolname "
    "  FROM tables t JOIN pg_attribute c ON c.attrelid = t.oid, aclexplode(c.attacl) a "
    "  JOIN roles r ON r.oid = a.grantee "
    "  UNION ALL "
    "  SELECT format('%s ON SCHEMA %I', a.privilege_type, s.nspname), r.rolname "
    "  FROM space s, aclexplode(s.nspacl) a JOIN roles r ON r.oid = a.grantee "
    "  WHERE r.oid <> s.nspowner) "
    "SELECT 'REVOKE ' || what || ' FROM ' || quote_ident(rolname) "
    "FROM (SELECT * FROM given EXCEPT SELECT * FROM wanted) AS taken "
    "UNION ALL SELECT 'GRANT ' || what || ' TO ' || quote_ident(rolname) "
    "FROM (SELECT * FROM wanted EXCEPT SELECT * FROM given) AS missing"};

}  // namespace

std::string RoleOf(std::string_view account) {
  return fmt::format("fluxqueue_{}", account);
}

const std::vector<Grant>& Grants() {
  static const std::vector<Grant> kGrants = {
      // Whether a job of its own was rejected; what was said to them, and they have not got.
      {"queue", "jobs", "admission", "SELECT"},
      {"queue", "inbox", "admission", "SELECT"},
      {"matcher", "specs", "admission", "SELECT"},
      {"matcher", "inbox", "admission", "SELECT"},
      // What people are told of a job: what it asked for, its nodes and its pods.
      {"matcher", "allocations", "queue", "SELECT"},
      {"matcher", "specs", "queue", "SELECT"},
      {"binder", "slots", "queue", "SELECT"},
      // The pools' graphs, as they were committed last.
      {"matcher", "allocations", "graph", "SELECT"},
      {"matcher", "graph_nodes", "graph", "SELECT"},
      {"matcher", "inbox", "graph", "SELECT"},
      {"matcher", "pools", "graph", "SELECT"},
      {"matcher", "reservations", "graph", "SELECT"},
      // Which replica of the queue claims are handed to.
      {"queue", "pools", "graph", "SELECT"},
      {"queue", "inbox", "graph", "SELECT"},
      // Where pods are to be bound; which partition a pool's facts go to.
      {"matcher", "allocations", "binder", "SELECT"},
      {"matcher", "graph_nodes", "binder", "SELECT"},
      {"admission", "pools", "binder", "SELECT"},
      // What pods that wait are to say.
      {"queue", "lack_nodes", "binder", "SELECT"},
      {"queue", "jobs", "binder", "SELECT"},
      // What is to be there, and what proves that a pod is of a job.
      {"admission", "pools", "cleanup", "SELECT"},
      {"binder", "slots", "cleanup", "SELECT"},
      {"matcher", "graph_nodes", "cleanup", "SELECT"},
      {"queue", "jobs", "cleanup", "SELECT"},
      // The command line reads all (verify, support-bundle), and writes nothing but the mark of
      // "dead-letters retry", and which messages are to be left out.
      {"admission", "*", "cli", "SELECT"},
      {"binder", "*", "cli", "SELECT"},
      {"cleanup", "*", "cli", "SELECT"},
      {"matcher", "*", "cli", "SELECT"},
      {"queue", "*", "cli", "SELECT"},
      {"admission", "quarantine", "cli", "UPDATE (retry)"},
      {"cleanup", "quarantine", "cli", "UPDATE (retry)"},
      {"binder", "skips", "cli", "INSERT"},
      {"matcher", "skips", "cli", "INSERT"},
      {"queue", "skips", "cli", "INSERT"},
  };
  return kGrants;
}

void ApplyGrants(pqxx::transaction_base& tx, const std::string& schema) {
  TextArray tables;
  TextArray roles;
  TextArray rights;
  for (const Grant& grant : Grants()) {
    if (grant.schema != schema) continue;
    tables.Add(grant.table);
    roles.Add(RoleOf(grant.account));
    rights.Add(grant.right);
  }
  TextArray ours;
  for (const char* account :
       {"admission", "queue", "matcher", "binder", "cleanup", "graph", "cli"}) {
    ours.Add(RoleOf(account));
  }
  for (const pqxx::row& row : Exec(tx,
                                   kDifferences,
                                   schema,
                                   tables.text(),
                                   roles.text(),
                                   rights.text(),
                                   ours.text(),
                                   RoleOf(schema))) {
    tx.exec(row[0].as<std::string>());
  }
}

}  // namespace fluxqueue::postgres
