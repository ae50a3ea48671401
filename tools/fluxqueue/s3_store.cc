#include "tools/fluxqueue/s3_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include "libs/base/backoff.h"
#include "libs/base/clock.h"
#include "libs/base/status_macros.h"
#include "libs/http/client.h"

namespace fluxqueue::cli {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr int kTries = 5;
constexpr Millis kRetryMin{200};
constexpr Millis kRetryMax{5'000};
constexpr long kConnectSeconds = 5;
constexpr long kSilenceSeconds = 60;
constexpr size_t kMostText = size_t{4} << 20;  // a page of a list; an error
constexpr long kNotFound = 404;
constexpr long kTooManyRequests = 429;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeDigest {
  void operator()(EVP_MD_CTX* digest) const { EVP_MD_CTX_free(digest); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;
using Headers = std::unique_ptr<curl_slist, FreeList>;

absl::StatusOr<File> Open(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode));
  if (file == nullptr) return InvalidArgument("{}: {}", path, strerrordesc_np(errno));
  return file;
}

// The SHA-256 of what is left of a file, in hexadecimal digits. Null: of nothing.
std::string DigestOf(std::FILE* file) {
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> digest(EVP_MD_CTX_new());
  EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr);
  std::array<char, 1 << 16> piece{};
  while (file != nullptr) {
    const size_t size = std::fread(piece.data(), 1, piece.size(), file);
    if (size == 0) break;
    EVP_DigestUpdate(digest.get(), piece.data(), size);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  EVP_DigestFinal_ex(digest.get(), bytes.data(), &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

// Slashes stay.
std::string EscapePath(std::string_view path) {
  std::string escaped;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    escaped += http::UrlEscape(path.substr(begin, end - begin));
    if (end < path.size()) escaped += '/';
    begin = end + 1;
  }
  return escaped;
}

struct Request {
  std::string target{};  // path and query, escaped, the query sorted: so it is signed
  std::FILE* upload = nullptr;
  curl_off_t size = 0;            // of `upload`
  std::FILE* download = nullptr;  // gets what a 2xx has; else it is text
  size_t bytes = ArchiveStore::kAll;
};

struct Answer {
  CURL* easy = nullptr;
  std::FILE* download = nullptr;
  long status = 0;
  std::string text{};
};

size_t Receive(char* bytes, size_t /*one*/, size_t size, void* to) {
  Answer& answer = *static_cast<Answer*>(to);
  curl_easy_getinfo(answer.easy, CURLINFO_RESPONSE_CODE, &answer.status);
  if (answer.download != nullptr && answer.status / 100 == 2) {
    return std::fwrite(bytes, 1, size, answer.download);
  }
  if (answer.text.size() + size > kMostText) return 0;
  answer.text.append(bytes, size);
  return size;
}

boost::property_tree::ptree ParseXml(const std::string& text) {
  boost::property_tree::ptree tree;
  std::istringstream stream(text);
  try {
    boost::property_tree::read_xml(stream, tree);
  } catch (const boost::property_tree::xml_parser_error&) {
    tree.clear();
  }
  return tree;
}

class S3 final : public ArchiveStore {
 public:
  explicit S3(S3Place place) : place_(std::move(place)) {}
  ~S3() override {
    std::error_code ignored;
    if (!scratch_.empty()) std::filesystem::remove_all(scratch_, ignored);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    std::vector<std::string> names;
    std::string next;
    do {
      ASSIGN_OR_RETURN(next, ListPage(folder, next, &names));
    } while (!next.empty());
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<LocalFile> Get(const std::string& name, size_t bytes) override {
    ASSIGN_OR_RETURN(LocalFile local, Scratch(fmt::format("got-{}", ++files_)));
    ASSIGN_OR_RETURN(const File file, Open(local.path(), "wb"));
    RETURN_IF_ERROR(
        Do({.target = TargetOf(name), .download = file.get(), .bytes = bytes}, PathOf(name))
            .status());
    if (std::fflush(file.get()) == 0) return local;
    return InvalidArgument("{}: {}", local.path(), strerrordesc_np(errno));
  }

  absl::Status Put(const LocalFile& local, const std::string& name) override {
    ASSIGN_OR_RETURN(const File file, Open(local.path(), "rb"));
    std::error_code error;
    const auto size = static_cast<curl_off_t>(std::filesystem::file_size(local.path(), error));
    if (error) return InvalidArgument("{}: {}", local.path(), error.message());
    return Do({.target = TargetOf(name), .upload = file.get(), .size = size}, PathOf(name))
        .status();
  }

  absl::StatusOr<LocalFile> Scratch(const std::string& name) override {
    RETURN_IF_ERROR(MakeScratch());
    return LocalFile::Temporary(scratch_ + "/" + name);
  }

  std::string PathOf(const std::string& name) const override {
    std::string path = fmt::format("{}{}/{}{}", kScheme, place_.bucket, place_.prefix, name);
    if (path.ends_with('/')) path.pop_back();
    return path;
  }

 private:
  absl::Status MakeScratch() {
    if (!scratch_.empty()) return absl::OkStatus();
    std::error_code error;
    std::string folder = std::filesystem::temp_directory_path(error) / "fluxqueue-archive-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) {
      return InvalidArgument(
          "{}: cannot be made: {}; $TMPDIR names another place", folder, strerrordesc_np(errno));
    }
    scratch_ = std::move(folder);
    return absl::OkStatus();
  }

  std::string TargetOf(const std::string& name) const {
    return fmt::format("/{}/{}", place_.bucket, EscapePath(place_.prefix + name));
  }

  // Where the next page begins; empty: there is none.
  absl::StatusOr<std::string> ListPage(const std::string& folder,
                                       const std::string& from,
                                       std::vector<std::string>* names) {
    Request request{.target = fmt::format("/{}?", place_.bucket)};
    if (!from.empty()) request.target += "continuation-token=" + http::UrlEscape(from) + "&";
    request.target += "delimiter=%2F&list-type=2&prefix=" + http::UrlEscape(place_.prefix + folder);
    ASSIGN_OR_RETURN(const Answer answer, Do(request, PathOf(folder)));
    const auto tree = ParseXml(answer.text);
    const auto root = tree.get_child_optional("ListBucketResult");
    if (!root) {
      return InvalidArgument(
          "{}: the store answers with no list: {}", PathOf(folder), answer.text.substr(0, 200));
    }
    for (const auto& [tag, child] : *root) {
      if (tag != "Contents") continue;
      const auto key = child.get<std::string>("Key", "");
      if (key.starts_with(place_.prefix)) names->push_back(key.substr(place_.prefix.size()));
    }
    return root->get<std::string>("NextContinuationToken", "");
  }

  absl::StatusOr<Answer> Do(const Request& request, const std::string& what) {
    Backoff backoff(kRetryMin, kRetryMax);
    for (int i = 1;; ++i) {
      Answer answer;
      const absl::Status sent = Try(request, &answer);
      const bool again = !sent.ok() || answer.status == kTooManyRequests || answer.status >= 500;
      if (!again || i == kTries) {
        RETURN_IF_ERROR(Annotate(sent, what));
        RETURN_IF_ERROR(Judge(answer, what));
        return answer;
      }
      std::this_thread::sleep_for(backoff.Next());
    }
  }

  static absl::Status Judge(const Answer& answer, const std::string& what) {
    if (answer.status / 100 == 2) return absl::OkStatus();
    const auto tree = ParseXml(answer.text);
    const auto code = tree.get<std::string>("Error.Code", "");
    if (answer.status == kNotFound && code != "NoSuchBucket") {
      return MakeStatus(absl::StatusCode::kNotFound, "{}: there is no such file", what);
    }
    return InvalidArgument("{}: the store answers {} {}: {}",
                           what,
                           answer.status,
                           code,
                           tree.get<std::string>("Error.Message", ""));
  }

  absl::Status Try(const Request& request, Answer* answer) {
    const std::unique_ptr<CURL, FreeEasy> easy(curl_easy_init());
    for (std::FILE* file : {request.upload, request.download}) {
      if (file != nullptr) std::rewind(file);
    }
    const Headers headers = HeadersOf(request);
    if (request.upload != nullptr) std::rewind(request.upload);
    *answer = {.easy = easy.get(), .download = request.download};
    Prepare(request, headers.get(), answer);
    std::array<char, CURL_ERROR_SIZE> error{};
    curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, error.data());
    const CURLcode code = curl_easy_perform(easy.get());
    if (code == CURLE_OK) {
      curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &answer->status);
      return absl::OkStatus();
    }
    return MakeStatus(absl::StatusCode::kUnavailable,
                      "{}: {}",
                      place_.endpoint,
                      error[0] != '\0' ? error.data() : curl_easy_strerror(code));
  }

  // libcurl signs them as well, and takes the digest from there.
  Headers HeadersOf(const Request& request) const {
    std::vector<std::string> lines = {"x-amz-content-sha256: " + DigestOf(request.upload)};
    if (!place_.token.empty()) lines.push_back("x-amz-security-token: " + place_.token);
    Headers headers;
    for (const std::string& line : lines) {
      curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
      headers.release();  // it is a part of the longer one
      headers.reset(longer);
    }
    return headers;
  }

  void Prepare(const Request& request, curl_slist* headers, Answer* answer) const {
    CURL* const easy = answer->easy;
    const std::string url = place_.endpoint + request.target;
    const std::string signing = fmt::format("aws:amz:{}:s3", place_.region);
    const std::string account = fmt::format("{}:{}", place_.key_id, place_.key);
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, signing.c_str());
    curl_easy_setopt(easy, CURLOPT_USERPWD, account.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "fluxqueue");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, kSilenceSeconds);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer);
    if (!place_.ca.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, place_.ca.c_str());
    if (request.bytes != kAll) {
      curl_easy_setopt(easy, CURLOPT_RANGE, fmt::format("0-{}", request.bytes - 1).c_str());
    }
    if (request.upload == nullptr) return;
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READDATA, request.upload);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, request.size);
  }

  const S3Place place_;
  std::string scratch_;  // a folder; empty: not made yet
  int files_ = 0;
};

std::string FirstOf(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return "";
}

}  // namespace

bool IsS3(std::string_view place) {
  return place.starts_with(kScheme);
}

absl::StatusOr<S3Place> ParseS3(const std::string& place, const Environment& environment) {
  const std::string path = place.substr(kScheme.size());
  S3Place out;
  out.bucket = path.substr(0, path.find('/'));
  if (out.bucket.size() < path.size()) out.prefix = path.substr(out.bucket.size() + 1);
  if (!out.prefix.empty() && !out.prefix.ends_with('/')) out.prefix += '/';
  out.endpoint = FirstOf(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (out.endpoint.ends_with('/')) out.endpoint.pop_back();
  out.region = FirstOf(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (out.region.empty()) out.region = "us-east-1";
  out.key_id = environment("AWS_ACCESS_KEY_ID");
  out.key = environment("AWS_SECRET_ACCESS_KEY");
  out.token = environment("AWS_SESSION_TOKEN");
  out.ca = environment("AWS_CA_BUNDLE");
  if (out.bucket.empty())
    return InvalidArgument("{}: wanted s3://BUCKET or s3://BUCKET/PREFIX", place);
  if (!out.endpoint.starts_with("http://") && !out.endpoint.starts_with("https://")) {
    return InvalidArgument(
        "{}: where the store is, is not said: set AWS_ENDPOINT_URL to its URL, such as "
        "https://s3.example.com (it is '{}')",
        place,
        out.endpoint);
  }
  if (out.key_id.empty() || out.key.empty()) {
    return InvalidArgument(
        "{}: who asks is not said: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", place);
  }
  return out;
}

std::shared_ptr<ArchiveStore> S3Store(S3Place place) {
  return std::make_shared<S3>(std::move(place));
}

}  // namespace fluxqueue::cli
