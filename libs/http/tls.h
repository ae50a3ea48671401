// The server's side of TLS, private to this library.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/ssl/context.hpp>

#include "libs/http/server.h"

#include "absl/status/statusor.h"

namespace fluxqueue::http::internal {

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

// InvalidArgument: which file cannot be used, and why.
absl::StatusOr<TlsContext> MakeTls(const ServerTls& files);

// When one of the files was last written; the clock's epoch if that cannot be told.
std::filesystem::file_time_type Written(const ServerTls& files);

// The client's certificate is for one of `names`; always, if there are none.
bool ClientIsAllowed(SSL* connection, const std::vector<std::string>& names);

}  // namespace fluxqueue::http::internal
