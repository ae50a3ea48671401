// Plain requests to the API server, for what libs/kubernetes has no call for.
#pragma once

#include <memory>

#include "libs/http/client.h"
#include "libs/kubernetes/config.h"

namespace fluxqueue::cli {

std::unique_ptr<http::Client> MakeClusterHttp(const kubernetes::ClusterConfig& config);

}  // namespace fluxqueue::cli
