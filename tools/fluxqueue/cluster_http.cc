#include "tools/fluxqueue/cluster_http.h"

#include <fstream>
#include <string>

namespace fluxqueue::cli {
namespace {

std::string TokenOf(const kubernetes::ClusterConfig& config) {
  std::string token = config.token;
  if (!config.token_file.empty()) std::getline(std::ifstream(config.token_file), token);
  return token;
}

}  // namespace

std::unique_ptr<http::Client> MakeClusterHttp(const kubernetes::ClusterConfig& config) {
  return std::make_unique<http::Client>(
      http::ClientOptions{.base_url = config.server, .tls = config.tls, .bearer_token = [config] {
                            return TokenOf(config);
                          }});
}

}  // namespace fluxqueue::cli
