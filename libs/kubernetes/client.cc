#include "libs/kubernetes/client.h"

#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/base/text.h"
#include "libs/kubernetes/json_reader.h"
#include "libs/kubernetes/json_text.h"
#include "libs/kubernetes/list_reader.h"

#include "absl/strings/cord.h"

namespace fluxqueue::kubernetes {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr absl::string_view kRetryAfterPayload = "fluxqueue.io/retry-after-ms";
constexpr std::chrono::seconds kTokenAge{10};
constexpr size_t kMaxBodyShown = 200;

// The bearer token; a file is read again every ten seconds, as the kubelet renews it.
class TokenSource {
 public:
  TokenSource(std::string token, std::string file)
      : token_(std::move(token)), file_(std::move(file)) {}

  std::string Token() {
    const std::lock_guard lock(mutex_);
    if (file_.empty()) return token_;
    const auto now = SteadyClock::now();
    if (read_ && now - *read_ < kTokenAge) return token_;
    read_ = now;
    std::ifstream file(file_);
    std::string text(std::istreambuf_iterator<char>(file), {});
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    if (text.empty()) {
      LogWarning("token file is empty or cannot be read, the last token stays", {{"file", file_}});
    } else {
      token_ = std::move(text);
    }
    return token_;
  }

 private:
  std::mutex mutex_;
  std::string token_;
  const std::string file_;
  std::optional<SteadyClock::time_point> read_;
};

struct ApiStatus {
  std::string reason;
  std::string message;
  bool other_uid = false;  // a patch named a uid that is not the object's
};

// The API server's Status object; for anything else the body's beginning.
ApiStatus ReadStatus(const http::Response& response) {
  internal::Document document("status", response.body);
  const internal::Field root = document.root();
  ApiStatus status{root["reason"].String(), root["message"].String(), false};
  root["details"]["causes"].ForEach([&](const internal::Field& cause) {
    status.other_uid = status.other_uid || cause["field"].String() == "metadata.uid";
  });
  if (status.message.empty()) status.message = Clean(response.body, kMaxBodyShown);
  return status;
}

absl::StatusCode CodeOf(int status, const ApiStatus& api) {
  switch (status) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return api.reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                           : absl::StatusCode::kAborted;
    case 422:
      return api.other_uid ? absl::StatusCode::kAborted : absl::StatusCode::kInvalidArgument;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 408:
    case 429:
      return absl::StatusCode::kUnavailable;
    default:
      return status >= 500 ? absl::StatusCode::kUnavailable : absl::StatusCode::kInvalidArgument;
  }
}

absl::Status ToStatus(const http::Response& response, std::string_view doing) {
  if (response.status >= 200 && response.status < 300) return absl::OkStatus();
  const ApiStatus api = ReadStatus(response);
  absl::Status status = MakeStatus(CodeOf(response.status, api),
                                   "{}: {} (HTTP {}{}{})",
                                   doing,
                                   api.message,
                                   response.status,
                                   api.reason.empty() ? "" : " ",
                                   api.reason);
  const std::string_view wait = http::FindHeader(response.headers, "Retry-After");
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(wait.data(), wait.data() + wait.size(), seconds);
  if (!wait.empty() && error == std::errc() && seconds >= 0 && seconds <= 3600) {
    status.SetPayload(kRetryAfterPayload, absl::Cord(std::to_string(seconds * 1000)));
  }
  return status;
}

// The connection was refused or cut, or the time ran out; or we gave up ourselves.
absl::Status Unanswered(const absl::Status& status, std::string_view doing) {
  if (!IsTransient(status)) return Annotate(status, doing);
  return Annotate(Annotate(status, "no answer from the Kubernetes API server"), doing);
}

int CodeOf(const absl::StatusOr<http::Response>& response) {
  return response.ok() ? response->status : 0;
}

std::string ContentType(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
  }
  return "";
}

// `"uid":"…","resourceVersion":"…"` of what is set.
std::string PreconditionMembers(const Preconditions& preconditions) {
  StringMap members;
  if (!preconditions.uid.empty()) members["uid"] = preconditions.uid;
  if (!preconditions.resource_version.empty()) {
    members["resourceVersion"] = preconditions.resource_version;
  }
  const std::string object = JsonObject(members);
  return object.substr(1, object.size() - 2);
}

std::string SelectorQuery(const Selector& selector) {
  std::string query;
  if (!selector.labels.empty()) query += "&labelSelector=" + http::UrlEscape(selector.labels);
  if (!selector.fields.empty()) query += "&fieldSelector=" + http::UrlEscape(selector.fields);
  return query;
}

std::string DeleteBody(const DeleteOptions& options) {
  std::string body = R"({"apiVersion":"v1","kind":"DeleteOptions")";
  const std::string preconditions = PreconditionMembers(options.preconditions);
  if (!preconditions.empty()) body += fmt::format(R"(,"preconditions":{{{}}})", preconditions);
  if (options.grace_period_s)
    body += fmt::format(R"(,"gracePeriodSeconds":{})", *options.grace_period_s);
  if (!options.propagation.empty()) {
    body += R"(,"propagationPolicy":)" + JsonString(options.propagation);
  }
  return body + "}";
}

std::string BindingBody(const Binding& binding) {
  std::string meta = fmt::format(
      R"("name":{},"namespace":{})", JsonString(binding.pod), JsonString(binding.space));
  const std::string preconditions = PreconditionMembers(binding.preconditions);
  if (!preconditions.empty()) meta += "," + preconditions;
  if (!binding.annotations.empty()) meta += R"(,"annotations":)" + JsonObject(binding.annotations);
  return fmt::format(R"({{"apiVersion":"v1","kind":"Binding","metadata":{{{}}},)"
                     R"("target":{{"apiVersion":"v1","kind":"Node","name":{}}}}})",
                     meta,
                     JsonString(binding.node));
}

}  // namespace

class Client::Impl {
 public:
  explicit Impl(ClusterConfig config)
      : timeout_(config.request_timeout),
        token_(std::move(config.token), std::move(config.token_file)),
        http_({.base_url = std::move(config.server),
               .tls = std::move(config.tls),
               .bearer_token = [this] { return token_.Token(); }}) {}

  // One request, counted; its body when the API server said yes.
  absl::StatusOr<std::string> Call(std::string_view verb,
                                   std::string_view resource,
                                   std::string_view object,
                                   http::ClientRequest request,
                                   std::optional<Millis> timeout = std::nullopt) {
    request.timeout = timeout.value_or(timeout_);
    const auto begin = SteadyClock::now();
    absl::StatusOr<http::Response> response = http_.Do(request);
    const std::string doing = Doing(verb, resource, object);
    absl::Status status =
        response.ok() ? ToStatus(*response, doing) : Unanswered(response.status(), doing);
    Count(verb, resource, CodeOf(response), SteadyClock::now() - begin);
    if (!status.ok()) return status;
    return std::move(response->body);
  }

  absl::Status Watch(const Resource& resource,
                     http::ClientRequest request,
                     const std::function<bool(std::string_view)>& sink,
                     std::stop_token stop);

  std::vector<CallCount> Calls() const {
    const std::lock_guard lock(mutex_);
    std::vector<CallCount> calls;
    for (const auto& [unused, count] : calls_) calls.push_back(count);
    return calls;
  }

 private:
  static std::string Doing(std::string_view verb,
                           std::string_view resource,
                           std::string_view object) {
    return fmt::format("{} {}{}{}", verb, resource, object.empty() ? "" : " ", object);
  }

  void Count(std::string_view verb,
             std::string_view resource,
             int code,
             SteadyClock::duration took) {
    const std::lock_guard lock(mutex_);
    CallCount& count = calls_[{verb, resource, code}];
    if (count.calls == 0) {
      count.verb = verb;
      count.resource = resource;
      count.code = code;
    }
    ++count.calls;
    count.seconds += std::chrono::duration<double>(took).count();
  }

  const Millis timeout_;
  TokenSource token_;
  http::Client http_;
  mutable std::mutex mutex_;
  // Verbs and plurals are literals.
  std::map<std::tuple<std::string_view, std::string_view, int>, CallCount> calls_;
};

absl::Status Client::Impl::Watch(const Resource& resource,
                                 http::ClientRequest request,
                                 const std::function<bool(std::string_view)>& sink,
                                 std::stop_token stop) {
  const auto begin = SteadyClock::now();
  bool counted = false;
  const auto count_once = [&](int code) {
    if (!std::exchange(counted, true)) {
      Count("watch", resource.plural, code, SteadyClock::now() - begin);
    }
  };
  const auto first = [&](std::string_view piece) {
    count_once(200);
    return sink(piece);
  };
  const absl::StatusOr<http::Response> response =
      http_.Stream(request, http::StreamLimits(), first, std::move(stop));
  const std::string doing = Doing("watch", resource.plural, "");
  const absl::Status status =
      response.ok() ? ToStatus(*response, doing) : Unanswered(response.status(), doing);
  // Ended by us before its first byte: nobody failed.
  count_once(absl::IsCancelled(status) ? 200 : CodeOf(response));
  return status;
}

Client::Client(ClusterConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}
Client::~Client() = default;

namespace {

std::string NameOf(std::string_view space, std::string_view name) {
  return space.empty() ? std::string(name) : fmt::format("{}/{}", space, name);
}

}  // namespace

absl::StatusOr<std::string> Client::DoGet(const Resource& resource,
                                          std::string_view space,
                                          std::string_view name,
                                          std::optional<Millis> timeout) {
  return impl_->Call(
      "get", resource.plural, NameOf(space, name), {.target = resource.Path(space, name)}, timeout);
}

absl::StatusOr<std::string> Client::DoList(
    const Resource& resource,
    const Selector& selector,
    const std::function<absl::Status(std::string_view)>& item,
    int page) {
  internal::ListReader reader;
  std::string token;
  while (true) {
    std::string target =
        fmt::format("{}?limit={}{}", resource.Path(selector.space), page, SelectorQuery(selector));
    if (!token.empty()) target += "&continue=" + http::UrlEscape(token);
    ASSIGN_OR_RETURN(std::string body,
                     impl_->Call("list", resource.plural, selector.space, {.target = target}));
    ASSIGN_OR_RETURN(internal::ListPage read, reader.ReadPage(body, item));
    if (read.continue_token.empty()) return std::move(read.resource_version);
    token = std::move(read.continue_token);
  }
}

absl::StatusOr<std::string> Client::DoCreate(const Resource& resource,
                                             std::string_view space,
                                             std::string_view body,
                                             std::optional<Millis> timeout) {
  return impl_->Call("create",
                     resource.plural,
                     space,
                     {.method = "POST",
                      .target = resource.Path(space),
                      .content_type = "application/json",
                      .body = std::string(body)},
                     timeout);
}

absl::StatusOr<std::string> Client::DoPatch(const Resource& resource,
                                            std::string_view space,
                                            std::string_view name,
                                            PatchType type,
                                            std::string_view body,
                                            std::string_view subresource) {
  return impl_->Call("patch",
                     resource.plural,
                     NameOf(space, name),
                     {.method = "PATCH",
                      .target = resource.Path(space, name, subresource),
                      .content_type = ContentType(type),
                      .body = std::string(body)});
}

absl::Status Client::DoDelete(const Resource& resource,
                              std::string_view space,
                              std::string_view name,
                              const DeleteOptions& options) {
  return impl_
      ->Call("delete",
             resource.plural,
             NameOf(space, name),
             {.method = "DELETE",
              .target = resource.Path(space, name),
              .content_type = "application/json",
              .body = DeleteBody(options)})
      .status();
}

absl::Status Client::Bind(const Binding& binding) {
  return impl_
      ->Call("bind",
             kPods.plural,
             NameOf(binding.space, binding.pod),
             {.method = "POST",
              .target = kPods.Path(binding.space, binding.pod, "binding"),
              .content_type = "application/json",
              .body = BindingBody(binding)})
      .status();
}

absl::Status Client::Watch(const Resource& resource,
                           const Selector& selector,
                           std::string_view resource_version,
                           Millis server_timeout,
                           const std::function<bool(std::string_view)>& sink,
                           std::stop_token stop) {
  const std::string target =
      fmt::format("{}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}{}",
                  resource.Path(selector.space),
                  http::UrlEscape(resource_version),
                  server_timeout.count() / 1000,
                  SelectorQuery(selector));
  return impl_->Watch(resource, {.target = target}, sink, std::move(stop));
}

uint64_t Client::NewSeed() {
  return std::random_device()();
}

absl::Status Client::Ready() {
  return impl_->Call("get", "readyz", "", {.target = "/readyz", .accept = "*/*"}).status();
}

std::vector<CallCount> Client::Calls() const {
  return impl_->Calls();
}

std::optional<Millis> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryAfterPayload);
  if (!payload) return std::nullopt;
  return Millis(std::stoll(std::string(*payload)));
}

}  // namespace fluxqueue::kubernetes
