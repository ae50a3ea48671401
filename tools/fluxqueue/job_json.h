// A job for programs: what `jobs` and `job` share.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/fluxqueue/job_store.h"

namespace fluxqueue::cli {

nlohmann::json JobJson(const Job& job);

}  // namespace fluxqueue::cli
