// A job for programs: what `jobs` and `job` share.
#pragma once

#include <nlohmann/json.hpp>

#include "libs/job_store/job_store.h"

namespace fluxqueue::cli {

nlohmann::json JobJson(const job_store::Job& job);

}  // namespace fluxqueue::cli
