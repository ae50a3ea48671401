// Who makes a gRPC call, as far as the call itself shows it:
//
//   a replica's certificate            the user for whom it asks, whom it names in the metadata
//                                      fluxqueue-forwarded-for, -group, -uid and -extra
//   a token of Kubernetes              whoever the API server says, for it has to be asked; with it
//     (authorization: Bearer TOKEN)    a client's certificate says nothing
//   another certificate of ours        the user "fluxqueue:client:NAME"
//   none                               nobody
//
// Tokens come by TLS only, as callers are asked for on no other connection.
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

// Metadata of a replica that hands a call on: for whom, each text in per cent encoding.
inline constexpr char kForwardedFor[] = "fluxqueue-forwarded-for";
inline constexpr char kForwardedGroup[] = "fluxqueue-forwarded-group";
inline constexpr char kForwardedUid[] = "fluxqueue-forwarded-uid";
inline constexpr char kForwardedExtra[] = "fluxqueue-forwarded-extra";  // KEY=VALUE

// Of a call that is made with a token: "Bearer TOKEN".
inline constexpr char kAuthorization[] = "authorization";
inline constexpr size_t kMostTokenBytes = 16 << 10;

// What is taken of a user: more is refused.
inline constexpr size_t kMostUserBytes = 512;
inline constexpr size_t kMostGroups = 1000;
inline constexpr size_t kMostGroupBytes = 16 << 10;  // together
inline constexpr size_t kMostExtras = 100;           // values
inline constexpr size_t kMostExtraBytes = 16 << 10;  // together, each with its key

// A user as Kubernetes names him; without a name it is nobody.
struct Caller {
  std::string user{};
  std::vector<std::string> groups{};
  std::string uid{};
  // What else who authenticated him says, such as the scopes of his token, which can take rights
  // away: never to be left out where somebody judges him.
  std::map<std::string, std::vector<std::string>> extra{};

  bool operator==(const Caller&) const = default;
};

struct Shown {
  Caller caller{};        // nobody, where there is a token
  std::string token{};    // nobody has looked yet whose it is; never to be logged
  bool by_queue = false;  // a replica of the queue hands the call on
};

// Of callers that are named by their certificates; no user of Kubernetes is called so.
inline constexpr char kClientUser[] = "fluxqueue:client:";

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// InvalidArgument: names the bound that one of its texts breaks, or a control character.
absl::Status CheckCaller(const Caller& caller);

// The same of the user of a token. PermissionDenied too: he is called as only certificates are.
absl::Status CheckTokenCaller(const Caller& caller);

// PermissionDenied: it says for whom it asks and is no replica, or the other way round, or it is a
// replica with a token. InvalidArgument: it shows something that is no token.
absl::StatusOr<Shown> ReadCaller(const grpc::AuthContext& connection,
                                 const CallMetadata& metadata,
                                 const ServerConfig::Callers& callers);

// The same of a call that a server with these callers has let through. Where callers are not asked
// for (Callers::wanted), it is named by its certificate or its address, what it says of whom it
// asks for is believed, and nobody looks at a token.
Shown ShownBy(const grpc::ServerContextBase& context, const ServerConfig::Callers& callers);

// REQUIRES: the call is one of a service that takes no tokens (ServedService::tokens).
Caller CallerOf(const grpc::ServerContextBase& context, const ServerConfig::Callers& callers);

// Of a call that is made for him.
void Forward(const Caller& caller, grpc::ClientContext* context);

// What a call that shows nothing is told. `tokens`: the service takes them.
absl::Status NobodyCalls(bool tokens);
// What a call with a token is told by a service that takes none.
absl::Status NoTokensHere();

}  // namespace fluxqueue::rpc
