// The cluster that the webhook is measured with: what its API server lists, and what it sends to
// the webhook. Pure but for the server.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libs/http/server.h"

namespace fluxqueue::bench {

// Plays the API server for what admission watches: 2,000 namespaces, 50 FluxQueues, 500
// LimitRanges, a few classes. Lists are whole; a watch ends after ten seconds without an event.
// Stops when it goes.
class ListingApi {
 public:
  ListingApi();
  ~ListingApi();
  ListingApi(const ListingApi&) = delete;
  ListingApi& operator=(const ListingApi&) = delete;

  int port() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// AdmissionReviews of one kind, as the API server sends them: with all defaults filled in, and
// managedFields.
struct ReviewKind {
  std::string name;
  std::string what;  // for people
  int share = 0;     // of 100 in the mixture
  std::vector<std::string> bodies;
};
std::vector<ReviewKind> MakeReviews();

}  // namespace fluxqueue::bench
