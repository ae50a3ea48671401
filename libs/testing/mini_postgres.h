// A real PostgreSQL server for a test: as MiniKafka.
#pragma once

#include <string>

#include "libs/testing/mini_server.h"

namespace fluxqueue::testing {

class MiniPostgres {
 public:
  MiniPostgres() : server_("postgres", "dsn") {}

  // A connection string; stays the same over Stop and Start.
  const std::string& dsn() const { return server_.address(); }
  // Data are kept in between.
  void Stop() { server_.Stop(); }
  void Start() { server_.Start(); }

 private:
  MiniServer server_;
};

}  // namespace fluxqueue::testing
