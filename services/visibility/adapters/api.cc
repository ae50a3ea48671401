#include "services/visibility/adapters/api.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <stdlib.h>

#include "libs/access/rights.h"
#include "libs/base/check.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/http/certificate.h"
#include "libs/visibility_json/visibility_json.h"
#include "services/visibility/domain/discovery.h"
#include "services/visibility/domain/objects.h"

namespace fluxqueue::visibility {
namespace {

constexpr std::chrono::seconds kLookAgain{30};
constexpr kubernetes::Resource kConfigMaps{"", "v1", "configmaps"};

// All requests come from the API servers, which are few.
constexpr size_t kMostPerSource = 512;
constexpr size_t kMostBodyBytes = 64 << 10;
// Discovery has room beside those that wait for the queue.
constexpr size_t kMostConnections = 1024;
constexpr int kMostTogether = 64;

std::string MakeFolder() {
  std::string folder = (std::filesystem::temp_directory_path() / "fluxqueue-XXXXXX").string();
  CHECK(mkdtemp(folder.data()) != nullptr, "{}: cannot be made", folder);
  return folder;
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  std::ofstream file(part);
  file << text;
  file.close();
  if (!file) return Unavailable("{}: cannot be written", part);
  RETURN_IF_ERROR(Annotate(http::CertificateEnd(part).status(), "the front proxy's authority"));
  std::error_code error;
  std::filesystem::rename(part, path, error);
  return error ? Unavailable("{}: {}", path, error.message()) : absl::OkStatus();
}

}  // namespace

// One request, until it is answered.
class Api::Turn {
 public:
  Turn(Api& api, http::Respond respond)
      : api_(api), respond_(std::move(respond)), start_(api.clock_.Monotonic()) {}
  ~Turn() {
    if (user_.empty()) return;
    const std::lock_guard lock(api_.mutex_);
    const auto it = api_.under_way_.find(user_);
    if (--it->second == 0) api_.under_way_.erase(it);
    --api_.together_;
    api_.over_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool Enter(const std::string& user) {
    const std::lock_guard lock(api_.mutex_);
    if (api_.together_ >= kMostTogether) return false;
    int& calls = api_.under_way_[user];
    if (calls >= api_.config_.calls_per_user) return false;
    ++calls;
    ++api_.together_;
    user_ = user;
    return true;
  }

  void Say(std::string_view verb, int code, std::string text) {
    api_.metrics_.Answered(verb, code, api_.clock_.Monotonic() - start_);
    http::Response response{
        .status = code, .content_type = "application/json", .body = std::move(text)};
    if (code == 429 || code == 503) response.headers.emplace_back("Retry-After", "1");
    respond_(std::move(response));
  }
  void Refuse(std::string_view verb, const absl::Status& why) {
    Failure failure = FailureOf(why);
    Say(verb, failure.code, std::move(failure.text));
  }

 private:
  Api& api_;
  const http::Respond respond_;
  const std::chrono::steady_clock::time_point start_;
  std::string user_;
};

Api::Api(const VisibilityConfig& config,
         kubernetes::Client& client,
         const Clock& clock,
         VisibilityMetrics& metrics)
    : config_(config),
      client_(client),
      clock_(clock),
      metrics_(metrics),
      queue_(config.queue_address, config.queue_files, clock),
      folder_(MakeFolder()) {}

Api::~Api() {
  queue_.Cancel();
  Drain();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<FrontProxy> Api::Look() {
  ASSIGN_OR_RETURN(const std::string text,
                   client_.Get(kConfigMaps, "kube-system", "extension-apiserver-authentication"));
  return ReadFrontProxy(text);
}

absl::Status Api::Run(lifecycle::LoopContext& loop) {
  const auto follow = [this]() -> absl::Status {
    ASSIGN_OR_RETURN(const FrontProxy seen, Look());
    return server_ != nullptr && seen == proxy_ ? absl::OkStatus() : Serve(seen);
  };
  do {
    if (server_ == nullptr) {
      const absl::Status served = loop.Retry("read who the API server calls as", follow);
      if (absl::IsCancelled(served)) break;
      RETURN_IF_ERROR(served);
    } else if (const absl::Status followed = follow(); !followed.ok()) {
      // What is known holds.
      LogWarning("cannot look who the API server calls as", {{"error", Message(followed)}});
    }
  } while (loop.SleepFor(kLookAgain));
  queue_.Cancel();
  Drain();
  return absl::OkStatus();
}

void Api::Drain() {
  if (server_ != nullptr) server_->Stop();
  std::unique_lock lock(mutex_);
  serving_ = false;
  over_.wait(lock, [this] { return under_way_.empty(); });
  lock.unlock();
  server_.reset();
}

absl::Status Api::Ready() const {
  const std::lock_guard lock(mutex_);
  return serving_ ? absl::OkStatus() : Unavailable("the API server has not named its front proxy");
}

absl::Status Api::Serve(const FrontProxy& proxy) {
  const std::string authority = folder_ + "/front-proxy-ca.crt";
  RETURN_IF_ERROR(WriteFile(authority, proxy.authority));
  Drain();
  proxy_ = proxy;
  http::ServerOptions options;
  options.address = config_.address;
  options.port = config_.port;
  options.threads = config_.threads;
  options.drain = config_.drain;
  options.max_connections = kMostConnections;
  options.max_requests_per_source = kMostPerSource;
  options.max_body_bytes = kMostBodyBytes;
  options.tls = http::ServerTls{.certificate_file = config_.certificate,
                                .key_file = config_.key,
                                .client_authority_file = authority,
                                .client_names = proxy.names,
                                .open_paths = {"/readyz"}};
  options.refused = [this](http::Refusal refusal) { metrics_.TurnedAway(refusal); };
  ASSIGN_OR_RETURN(
      server_,
      http::Server::Start(
          options, http::AsyncHandler([this](const http::Request& request, http::Respond respond) {
            Answer(request, respond);
          })));
  LogInfo("serving the aggregated API",
          {{"address", fmt::format("{}:{}", config_.address, server_->port())},
           {"front_proxies", fmt::format("{}", fmt::join(proxy.names, ","))}});
  const std::lock_guard lock(mutex_);
  serving_ = true;
  return absl::OkStatus();
}

void Api::Answer(const http::Request& request, const http::Respond& respond) {
  if (request.path == "/readyz") return respond({.body = "ok\n"});
  auto turn = std::make_shared<Turn>(*this, respond);
  if (const auto document = DiscoveryDocument(request.path)) {
    return turn->Say("discovery", 200, *document);
  }
  const std::string prefix = fmt::format("/apis/{}/{}/", kGroup, kVersion);
  if (!request.path.starts_with(prefix)) {
    return turn->Refuse("",
                        MakeStatus(absl::StatusCode::kNotFound,
                                   "there is nothing at this path; /apis/{} says what there is",
                                   kGroup));
  }
  Ask(request, std::string_view(request.path).substr(prefix.size()), std::move(turn));
}

void Api::Ask(const http::Request& request, std::string_view path, std::shared_ptr<Turn> turn) {
  const absl::StatusOr<rpc::Caller> caller = CallerOf(proxy_, request.headers);
  if (!caller.ok()) return turn->Refuse("", caller.status());
  if (request.method == "POST") {
    const absl::Status json = CheckContentType(http::FindHeader(request.headers, "Content-Type"));
    if (!json.ok()) return turn->Refuse("", json);
  }
  const auto ask = ReadAsk(request.method, path, request.query, request.body);
  if (!ask.ok()) return turn->Refuse("", ask.status());
  const std::string_view verb = VerbName(ask->verb);
  if (!turn->Enter(std::string(access::TenantOf(caller->user)))) {
    return turn->Refuse(verb,
                        MakeStatus(absl::StatusCode::kResourceExhausted,
                                   "too many requests, {} of one user or {} of all, are being "
                                   "answered (of service accounts: of one namespace); come again",
                                   config_.calls_per_user,
                                   kMostTogether));
  }
  const bool as_table = WantsTable(http::FindHeader(request.headers, "Accept"));
  queue_.Do(*ask, as_table, *caller, [turn, verb](absl::StatusOr<std::string> text) {
    if (!text.ok()) return turn->Refuse(verb, text.status());
    turn->Say(verb, 200, *std::move(text));
  });
}

}  // namespace fluxqueue::visibility
