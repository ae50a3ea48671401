// A job's columns are what its row says.
#pragma once

#include <string>

#include "libs/queue_core/rows.h"

namespace fluxqueue::queue_core {

// As the core that wrote the row (JobChange.row) had written it.
JobChange ChangeOf(std::string row);

}  // namespace fluxqueue::queue_core
