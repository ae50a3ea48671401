#include "libs/postgres/store.h"

#include "libs/postgres/connection.h"
#include "libs/postgres/migrations.h"

namespace fluxqueue::postgres {
namespace {

class PostgresStores final : public Stores {
 public:
  std::unique_ptr<Store> Open(const Options& options) override {
    return std::make_unique<Connection>(options);
  }
  absl::Status Migrate(const Options& options,
                       const std::vector<const MigrationSet*>& sets) override {
    Connection connection(options);
    return postgres::Migrate(connection, options.schema, sets);
  }
};

}  // namespace

std::shared_ptr<Stores> RealStores() {
  return std::make_shared<PostgresStores>();
}

}  // namespace fluxqueue::postgres
