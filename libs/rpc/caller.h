// Who makes a gRPC call, as far as the call itself shows it:
//
//   a replica's certificate            the user for whom it asks, whom it names in the metadata
//                                      fluxqueue-forwarded-for and fluxqueue-forwarded-group
//   another certificate of ours        the user "fluxqueue:client:NAME"
//   none                               nobody
//
// A certificate counts when the authority of clients has signed it (TLS has seen to that) and a DNS
// name of it stands in the configuration (ServerConfig::Callers). What a call shows is bounded, and
// refused where it is not what it must be.
//
// Thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/string_ref.h>

#include "libs/rpc/server_config.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grpc {
class ClientContext;
class ServerContextBase;
}  // namespace grpc

namespace fluxqueue::rpc {

// Metadata of a replica that hands a call on: for whom, each name and group in per cent encoding.
inline constexpr char kForwardedFor[] = "fluxqueue-forwarded-for";
inline constexpr char kForwardedGroup[] = "fluxqueue-forwarded-group";

// What is taken of a user: more is refused.
inline constexpr size_t kMostUserBytes = 512;
inline constexpr size_t kMostGroups = 1000;
inline constexpr size_t kMostGroupBytes = 16 << 10;  // together

// A user as Kubernetes names him; without a name it is nobody.
struct Caller {
  std::string user{};
  std::vector<std::string> groups{};

  bool operator==(const Caller&) const = default;
};

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// InvalidArgument: names the bound that a name of a user or group breaks, or a control character.
absl::Status CheckCaller(const Caller& caller);

// PermissionDenied: it says for whom it asks and is no replica, or the other way round.
absl::StatusOr<Caller> ReadCaller(const grpc::AuthContext& connection,
                                  const CallMetadata& metadata,
                                  const ServerConfig::Callers& callers);

// The same of a call that a server with these callers has let through. Where callers are not asked
// for (Callers::wanted), it is named by its certificate or its address, and what it says of whom it
// asks for is believed.
Caller CallerOf(const grpc::ServerContextBase& context, const ServerConfig::Callers& callers);

// Of a call that is made for him.
void Forward(const Caller& caller, grpc::ClientContext* context);

// What a call that shows nothing is told.
absl::Status NobodyCalls();

}  // namespace fluxqueue::rpc
