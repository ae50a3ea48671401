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

// REQUIRES: the handshake succeeded, so the certificate is the authority's, if there is one.
bool ClientIsAllowed(SSL* connection, const ServerTls& wanted);

}  // namespace fluxqueue::http::internal
