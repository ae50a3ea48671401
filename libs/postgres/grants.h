// Who may do what in whose schema: the one list, for installations where each service has a role of
// its own (deploy/helm/fluxqueue/files/roles.sql makes them; deploy/docs/security.md).
//
// A service owns the schema of its name, and nobody else has any right there but what is listed
// here. The owner gives it: Migrate does, so that what a migration has made is given, too. Where
// services share an account, nothing is given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pqxx/pqxx>

namespace fluxqueue::postgres {

// "fluxqueue_queue" of "queue".
std::string RoleOf(std::string_view account);

struct Grant {
  std::string_view schema;   // of the owner
  std::string_view table;    // "*": each
  std::string_view account;  // who gets it: a service, or "cli"
  std::string_view right;    // "SELECT", "UPDATE (column)"
};

const std::vector<Grant>& Grants();

// Makes the rights in `schema` those of the list: gives what is missing, and takes from our roles
// what is not in it. Nothing, where the schema is not of its service's own role. The session's user
// must have the owner's rights. Throws what libpqxx throws.
void ApplyGrants(pqxx::transaction_base& tx, const std::string& schema);

}  // namespace fluxqueue::postgres
