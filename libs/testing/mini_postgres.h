// A real PostgreSQL server for a test: as MiniKafka.
#pragma once

#include <string>

#include "libs/postgres/grants.h"
#include "libs/testing/mini_server.h"

namespace fluxqueue::testing {

class MiniPostgres {
 public:
  MiniPostgres() : server_("postgres", "dsn") {}

  // A connection string; stays the same over Stop and Start. Of the role "fluxqueue", which owns
  // the database.
  const std::string& dsn() const { return server_.address(); }
  // Makes a role for each service (tools/postgres/roles), of all of which "fluxqueue" is a member.
  void MakeRoles() { server_.RunTool("roles"); }
  // Of a service's role, of that of "cli", or of the superuser "postgres".
  std::string dsn_of(const std::string& account) const {
    std::string dsn = this->dsn();
    const std::string role = account == "postgres" ? account : postgres::RoleOf(account);
    return dsn.replace(dsn.find("fluxqueue@"), std::string("fluxqueue").size(), role);
  }
  // Data are kept in between.
  void Stop() { server_.Stop(); }
  void Start() { server_.Start(); }

 private:
  MiniServer server_;
};

}  // namespace fluxqueue::testing
