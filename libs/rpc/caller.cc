#include "libs/rpc/caller.h"

#include <algorithm>

#include <fmt/format.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::rpc {
namespace {

constexpr char kForwarded[] = "fluxqueue-forwarded-…";

absl::Status Denied(std::string_view why) {
  return MakeStatus(absl::StatusCode::kPermissionDenied, "{}", why);
}

std::vector<std::string> All(const CallMetadata& metadata, const char* key) {
  std::vector<std::string> values;
  const auto [begin, end] = metadata.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    values.emplace_back(it->second.data(), it->second.size());
  }
  return values;
}

bool Unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~:@/").find(c) != std::string_view::npos;
}

std::string Encode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (Unreserved(c)) {
      encoded.push_back(c);
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

absl::StatusOr<std::string> Decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const bool whole = i + 2 < text.size() && Digit(text[i + 1]) >= 0 && Digit(text[i + 2]) >= 0;
    if (!whole) return InvalidArgument("{}: is not in per cent encoding", kForwarded);
    decoded.push_back(static_cast<char>(Digit(text[i + 1]) * 16 + Digit(text[i + 2])));
    i += 2;
  }
  return decoded;
}

absl::StatusOr<Caller> ReadForwarded(const std::string& user, const CallMetadata& metadata) {
  Caller caller;
  ASSIGN_OR_RETURN(caller.user, Decode(user));
  for (const std::string& group : All(metadata, kForwardedGroup)) {
    ASSIGN_OR_RETURN(std::string decoded, Decode(group));
    caller.groups.push_back(std::move(decoded));
  }
  const std::vector<std::string> uids = All(metadata, kForwardedUid);
  if (uids.size() > 1) return InvalidArgument("{}: allowed once", kForwardedUid);
  if (!uids.empty()) {
    ASSIGN_OR_RETURN(caller.uid, Decode(uids.front()));
  }
  for (const std::string& extra : All(metadata, kForwardedExtra)) {
    const size_t equals = extra.find('=');
    if (equals == extra.npos) return InvalidArgument("{}: allowed is KEY=VALUE", kForwardedExtra);
    ASSIGN_OR_RETURN(const std::string key, Decode(std::string_view(extra).substr(0, equals)));
    ASSIGN_OR_RETURN(std::string value, Decode(std::string_view(extra).substr(equals + 1)));
    caller.extra[key].push_back(std::move(value));
  }
  RETURN_IF_ERROR(CheckCaller(caller));
  return caller;
}

bool SaysForWhom(const CallMetadata& metadata) {
  const auto keys = {kForwardedFor, kForwardedGroup, kForwardedUid, kForwardedExtra};
  return std::any_of(
      keys.begin(), keys.end(), [&metadata](const char* key) { return metadata.count(key) > 0; });
}

bool IsTokenByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

// What it says is left out of the sentences: it may be a token all the same.
absl::StatusOr<std::string> ReadToken(const std::vector<std::string>& shown) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string& first = shown.front();
  if (shown.size() != 1 || first.compare(0, kBearer.size(), kBearer) != 0) {
    return InvalidArgument("{}: allowed is 'Bearer TOKEN', once", kAuthorization);
  }
  std::string token = first.substr(kBearer.size());
  if (token.empty() || token.size() > kMostTokenBytes ||
      !std::all_of(token.begin(), token.end(), IsTokenByte)) {
    return InvalidArgument(
        "{}: a token of {} bytes; allowed are 1 to {} letters, digits and -._~+/=",
        kAuthorization,
        token.size(),
        kMostTokenBytes);
  }
  return token;
}

enum class Known { kNobody, kReplica, kClient };

struct Certificate {
  Known known = Known::kNobody;
  std::string name{};
};

// By the first of its DNS names that the configuration has.
Certificate CertificateOf(const grpc::AuthContext& connection,
                          const ServerConfig::Callers& callers) {
  if (!connection.IsPeerAuthenticated()) return {};
  for (const grpc::string_ref& property :
       connection.FindPropertyValues(GRPC_PEER_DNS_PROPERTY_NAME)) {
    std::string name(property.data(), property.size());
    const bool replica =
        name == callers.queue || name == callers.graph || name == callers.visibility;
    if (replica) return {Known::kReplica, name};
    const auto& clients = callers.clients;
    if (std::find(clients.begin(), clients.end(), name) != clients.end()) {
      return {Known::kClient, std::move(name)};
    }
  }
  return {};
}

// The name in its certificate, or where it comes from.
std::string NameOf(const grpc::ServerContextBase& context) {
  const auto connection = context.auth_context();
  if (connection != nullptr && connection->IsPeerAuthenticated()) {
    const auto names = connection->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
    if (!names.empty()) return Clean({names[0].data(), names[0].size()}, kMostUserBytes);
  }
  const std::string peer = context.peer();  // "ipv4:127.0.0.1:40566"
  return peer.substr(0, peer.rfind(':'));
}

absl::Status CheckExtra(const Caller& caller) {
  if (!IsPlain(caller.uid, kMostUserBytes)) {
    return InvalidArgument("the uid of user {} has {} bytes, or a control character; allowed: {}",
                           caller.user,
                           caller.uid.size(),
                           kMostUserBytes);
  }
  size_t count = 0;
  size_t bytes = 0;
  bool plain = true;
  for (const auto& [key, values] : caller.extra) {
    count += std::max<size_t>(values.size(), 1);
    bytes += key.size() * std::max<size_t>(values.size(), 1);
    plain = plain && IsPlain(key, kMostExtraBytes);
    for (const std::string& value : values) {
      bytes += value.size();
      plain = plain && IsPlain(value, kMostExtraBytes);
    }
  }
  if (plain && count <= kMostExtras && bytes <= kMostExtraBytes) return absl::OkStatus();
  return InvalidArgument(
      "what is said besides of user {} has {} values, of {} bytes, or a control character; "
      "allowed: "
      "{}, of {} bytes",
      caller.user,
      count,
      bytes,
      kMostExtras,
      kMostExtraBytes);
}

}  // namespace

absl::Status CheckCaller(const Caller& caller) {
  if (caller.user.empty()) return InvalidArgument("a user without a name");
  if (!IsPlain(caller.user, kMostUserBytes)) {
    return InvalidArgument("the name of the user has {} bytes, or a control character; allowed: {}",
                           caller.user.size(),
                           kMostUserBytes);
  }
  size_t bytes = 0;
  for (const std::string& group : caller.groups) {
    bytes += group.size();
    if (!IsPlain(group, kMostGroupBytes)) {
      return InvalidArgument("a group of user {} is no text, or too long", caller.user);
    }
  }
  if (caller.groups.size() > kMostGroups || bytes > kMostGroupBytes) {
    return InvalidArgument("user {} is in {} groups, of {} bytes; allowed: {}, of {} bytes",
                           caller.user,
                           caller.groups.size(),
                           bytes,
                           kMostGroups,
                           kMostGroupBytes);
  }
  return CheckExtra(caller);
}

absl::Status CheckTokenCaller(const Caller& caller) {
  RETURN_IF_ERROR(CheckCaller(caller));
  if (caller.user.rfind(kClientUser, 0) != 0) return absl::OkStatus();
  return Denied(
      fmt::format("users {}… are those of certificates: a user of Kubernetes may not be called so",
                  kClientUser));
}

absl::StatusOr<Shown> ReadCaller(const grpc::AuthContext& connection,
                                 const CallMetadata& metadata,
                                 const ServerConfig::Callers& callers) {
  const Certificate certificate = CertificateOf(connection, callers);
  const std::vector<std::string> forwarded = All(metadata, kForwardedFor);
  const std::vector<std::string> tokens = All(metadata, kAuthorization);
  if (certificate.known == Known::kReplica) {
    if (!tokens.empty()) {
      return Denied(fmt::format("{} is a replica, and says for whom it asks ({}): leave out {}",
                                certificate.name,
                                kForwardedFor,
                                kAuthorization));
    }
    if (forwarded.size() == 1) {
      ASSIGN_OR_RETURN(Caller caller, ReadForwarded(forwarded.front(), metadata));
      return Shown{.caller = std::move(caller), .by_queue = certificate.name == callers.queue};
    }
    return Denied(fmt::format("{} is a replica, and has to say for whom it asks, once ({})",
                              certificate.name,
                              kForwardedFor));
  }
  if (SaysForWhom(metadata)) {
    return Denied(fmt::format(
        "only replicas say for whom they ask, by their certificate: leave out {}", kForwarded));
  }
  if (!tokens.empty()) {
    ASSIGN_OR_RETURN(std::string token, ReadToken(tokens));
    return Shown{.token = std::move(token)};
  }
  if (certificate.known == Known::kNobody) return Shown{};
  return Shown{.caller = {.user = kClientUser + certificate.name}};
}

Shown ShownBy(const grpc::ServerContextBase& context, const ServerConfig::Callers& callers) {
  const CallMetadata& metadata = context.client_metadata();
  if (callers.wanted()) {
    absl::StatusOr<Shown> shown = ReadCaller(*context.auth_context(), metadata, callers);
    CHECK(shown.ok(), "the gate let through: {}", Message(shown.status()));
    return *std::move(shown);
  }
  const std::vector<std::string> forwarded = All(metadata, kForwardedFor);
  if (!forwarded.empty()) {
    auto caller = ReadForwarded(forwarded.front(), metadata);
    if (caller.ok()) return {.caller = *std::move(caller)};
  }
  return {.caller = {.user = NameOf(context)}};
}

Caller CallerOf(const grpc::ServerContextBase& context, const ServerConfig::Callers& callers) {
  Shown shown = ShownBy(context, callers);
  CHECK(shown.token.empty(), "the gate let a token through, of a service that takes none");
  return std::move(shown.caller);
}

void Forward(const Caller& caller, grpc::ClientContext* context) {
  context->AddMetadata(kForwardedFor, Encode(caller.user));
  for (const std::string& group : caller.groups) {
    context->AddMetadata(kForwardedGroup, Encode(group));
  }
  if (!caller.uid.empty()) context->AddMetadata(kForwardedUid, Encode(caller.uid));
  for (const auto& [key, values] : caller.extra) {
    for (const std::string& value : values) {
      context->AddMetadata(kForwardedExtra, Encode(key) + "=" + Encode(value));
    }
  }
}

absl::Status NobodyCalls(bool tokens) {
  return WithReason(
      MakeStatus(absl::StatusCode::kUnauthenticated,
                 "the call does not say who makes it: show a certificate that the services' "
                 "authority has signed, with a name that grpc.callers.clients lists{}",
                 tokens ? ", or a token of Kubernetes for the audience fluxqueue (authorization: "
                          "Bearer TOKEN)"
                        : ""),
      "CALLER_UNKNOWN");
}

absl::Status NoTokensHere() {
  return WithReason(
      MakeStatus(absl::StatusCode::kUnauthenticated,
                 "this service takes no tokens of Kubernetes: leave out {}, and show a certificate "
                 "that the services' authority has signed, with a name that grpc.callers.clients "
                 "lists",
                 kAuthorization),
      "CALLER_UNKNOWN");
}

}  // namespace fluxqueue::rpc
