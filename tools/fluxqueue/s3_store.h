// An archive in an S3-compatible store: the objects of a bucket whose names begin alike. The store
// and the account are named as for its other clients, by the environment:
//
//   AWS_ENDPOINT_URL_S3, else AWS_ENDPOINT_URL   "https://s3.example.com:9000"
//   AWS_REGION, else AWS_DEFAULT_REGION          us-east-1 if neither is set
//   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY     and AWS_SESSION_TOKEN, if the key has one
//   AWS_CA_BUNDLE                                a file of authorities; else the system's
//
// The bucket is in the path of the URL. Requests are signed by libcurl (AWS Signature Version 4).
// What fails for the moment (no answer, 429, 5xx) is tried five times. A file is put with one
// request, of which stores take 5 GB.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/fluxqueue/archive_store.h"

namespace fluxqueue::cli {

struct S3Place {
  std::string endpoint;  // without a closing slash
  std::string region;
  std::string key_id;
  std::string key;
  std::string token{};  // empty: none
  std::string ca{};     // empty: the system's
  std::string bucket;
  std::string prefix{};  // empty, or with a closing slash
};

// "s3://BUCKET/PREFIX".
bool IsS3(std::string_view place);

using Environment = std::function<std::string(const std::string& name)>;

// InvalidArgument: no bucket, or the environment does not say where or who.
absl::StatusOr<S3Place> ParseS3(const std::string& place, const Environment& environment);

std::shared_ptr<ArchiveStore> S3Store(S3Place place);

}  // namespace fluxqueue::cli
