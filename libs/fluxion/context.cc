#include "libs/fluxion/context.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/match_policy.h"

namespace fluxqueue::fluxion {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 10> kPolicies = {"first",
                                                        "firstnodex",
                                                        "high",
                                                        "hinode",
                                                        "hinodex",
                                                        "locality",
                                                        "lonode",
                                                        "lonodex",
                                                        "low",
                                                        "variation"};

// C would see another text.
absl::Status CheckHasNoNul(std::string_view what, const std::string& text) {
  const size_t end = text.find('\0');
  if (end != std::string::npos) return InvalidArgument("{}: has a NUL at byte {}", what, end);
  return absl::OkStatus();
}

// The library aborts on what it does not know.
absl::Status CheckPolicy(const std::string& policy) {
  if (std::find(kPolicies.begin(), kPolicies.end(), policy) != kPolicies.end()) {
    return absl::OkStatus();
  }
  if (policy.find('=') != std::string::npos) return graph::MatchPolicy::Parse(policy).status();
  return InvalidArgument(
      "policy \"{}\": the fluxion engine knows {}, and settings of policy=high|low …",
      policy,
      fmt::join(kPolicies, ", "));
}

absl::Status CheckText(std::string_view what, const std::string& text) {
  if (text.empty()) return InvalidArgument("{}: is empty", what);
  return CheckHasNoNul(what, text);
}

absl::Status CheckJob(uint64_t job) {
  if (job <= static_cast<uint64_t>(INT64_MAX)) return absl::OkStatus();
  return InvalidArgument("job {}: the library cannot cancel ids above {}", job, INT64_MAX);
}

// What came back, freed.
std::string Take(char* text) {
  const std::string copy = text == nullptr ? "" : text;
  std::free(text);
  return copy;
}

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case EBUSY:
      return absl::StatusCode::kResourceExhausted;
    case ENODEV:
      return absl::StatusCode::kFailedPrecondition;
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    default:
      // Also 0: the library fails without saying why.
      return absl::StatusCode::kInvalidArgument;
  }
}

class LibraryContext final : public Context {
 public:
  LibraryContext(std::shared_ptr<const Library> library, reapi_cli_ctx_t* ctx)
      : library_(std::move(library)), ctx_(ctx) {}
  ~LibraryContext() override;
  LibraryContext(const LibraryContext&) = delete;
  LibraryContext& operator=(const LibraryContext&) = delete;

  absl::Status Initialize(const std::string& jgf, const std::string& options);
  absl::StatusOr<Placed> Match(graph::MatchOperation operation,
                               const std::string& jobspec,
                               uint64_t job) override;
  absl::Status Restore(uint64_t job, const std::string& resources) override;
  absl::Status Cancel(uint64_t job) override;
  absl::Status CancelPart(uint64_t job, const std::string& resources) override;
  absl::StatusOr<std::string> Find(const std::string& criteria) override;
  absl::Status SetUp(const std::string& path, bool up) override;

 private:
  // What went wrong in the call that has just failed, with the library's text, which is cleared.
  absl::Status Failed(std::string_view what, int error) const;

  std::shared_ptr<const Library> library_;
  reapi_cli_ctx_t* ctx_;
};

LibraryContext::~LibraryContext() {
  (*library_)->destroy(ctx_);
}

absl::Status LibraryContext::Initialize(const std::string& jgf, const std::string& options) {
  const int rc = (*library_)->initialize(ctx_, jgf.c_str(), options.c_str());
  if (rc == 0) return absl::OkStatus();
  return InvalidArgument("{}", Message(Failed("graph", errno)));
}

absl::Status LibraryContext::Failed(std::string_view what, int error) const {
  std::string text = Take(const_cast<char*>((*library_)->get_err_msg(ctx_)));
  (*library_)->clear_err_msg(ctx_);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const char* name = strerrorname_np(error);
  if (text.empty()) text = "the library does not say why";
  return MakeStatus(CodeOf(error),
                    "{}: {} ({})",
                    what,
                    text,
                    error == 0 || name == nullptr ? std::string_view("no errno") : name);
}

absl::StatusOr<Context::Placed> LibraryContext::Match(graph::MatchOperation operation,
                                                      const std::string& jobspec,
                                                      uint64_t job) {
  RETURN_IF_ERROR(CheckText("jobspec", jobspec));
  RETURN_IF_ERROR(CheckJob(job));
  Placed placed;
  char* resources = nullptr;
  double overhead = 0;
  errno = 0;
  const int rc = (*library_)->match_with_jobid(ctx_,
                                               static_cast<int>(operation) + 1,
                                               jobspec.c_str(),
                                               job,
                                               &placed.reserved,
                                               &resources,
                                               &placed.at_s,
                                               &overhead);
  if (rc != 0) return Failed("match", errno);
  placed.resources = Take(resources);
  return placed;
}

absl::Status LibraryContext::Restore(uint64_t job, const std::string& resources) {
  RETURN_IF_ERROR(CheckText("R", resources));
  RETURN_IF_ERROR(CheckJob(job));
  int64_t at = 0;
  double overhead = 0;
  const char* written = nullptr;
  errno = 0;
  const int rc =
      (*library_)->update_allocate(ctx_, job, resources.c_str(), &at, &overhead, &written);
  if (rc != 0) return Failed("restore", errno);
  Take(const_cast<char*>(written));
  return absl::OkStatus();
}

absl::Status LibraryContext::Cancel(uint64_t job) {
  RETURN_IF_ERROR(CheckJob(job));
  errno = 0;
  const int rc = (*library_)->cancel(ctx_, job, /*noent_ok=*/false);
  return rc == 0 ? absl::OkStatus() : Failed("cancel", errno);
}

absl::Status LibraryContext::CancelPart(uint64_t job, const std::string& resources) {
  RETURN_IF_ERROR(CheckText("R", resources));
  RETURN_IF_ERROR(CheckJob(job));
  bool all = false;
  errno = 0;
  const int rc =
      (*library_)->partial_cancel(ctx_, job, resources.c_str(), /*noent_ok=*/false, &all);
  return rc == 0 ? absl::OkStatus() : Failed("partial cancel", errno);
}

absl::StatusOr<std::string> LibraryContext::Find(const std::string& criteria) {
  RETURN_IF_ERROR(CheckText("criteria", criteria));
  char* found = nullptr;
  errno = 0;
  if ((*library_)->find(ctx_, criteria.c_str(), "jgf", &found) != 0) return Failed("find", errno);
  return Take(found);
}

absl::Status LibraryContext::SetUp(const std::string& path, bool up) {
  RETURN_IF_ERROR(CheckText("path", path));
  errno = 0;
  const int rc = (*library_)->set_status(ctx_, path.c_str(), up ? REAPI_UP : REAPI_DOWN);
  return rc == 0 ? absl::OkStatus() : Failed(path, errno);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Context>> MakeContext(std::shared_ptr<const Library> library,
                                                     const std::string& jgf,
                                                     const Context::Settings& settings) {
  RETURN_IF_ERROR(CheckPolicy(settings.policy));
  if (settings.traverser != "simple" && settings.traverser != "flexible") {
    return InvalidArgument("traverser \"{}\": must be simple or flexible", settings.traverser);
  }
  RETURN_IF_ERROR(CheckText("graph", jgf));
  RETURN_IF_ERROR(CheckHasNoNul("prune filters", settings.prune_filters));
  const json options = {{"load_format", "jgf"},
                        {"matcher_policy", settings.policy},
                        {"traverser_policy", settings.traverser},
                        {"match_format", "rv1"},
                        {"prune_filters", settings.prune_filters}};
  reapi_cli_ctx_t* ctx = (*library)->make();
  if (ctx == nullptr) {
    return MakeStatus(absl::StatusCode::kResourceExhausted, "no memory for a context");
  }
  auto context = std::make_unique<LibraryContext>(std::move(library), ctx);
  RETURN_IF_ERROR(context->Initialize(jgf, options.dump()));
  return context;
}

}  // namespace fluxqueue::fluxion
