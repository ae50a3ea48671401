#include "libs/postgres/statement.h"

namespace fluxqueue::postgres {

uint64_t& RowsWritten() {
  thread_local uint64_t rows = 0;
  return rows;
}

}  // namespace fluxqueue::postgres
