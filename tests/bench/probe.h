// What a running stack costs: the services' own counters, and what the kernel says of processes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fluxqueue::bench {

// One line of a /metrics page.
struct MetricLine {
  std::string name;
  std::string labels;  // {verb="create",resource="pods"}, or empty
  double value = 0;
};
std::vector<MetricLine> ParseMetrics(std::string_view text);

// "http://127.0.0.1:9102", "/metrics" → the body of a 200.
absl::StatusOr<std::string> Fetch(const std::string& server,
                                  const std::string& target,
                                  const std::string& method = "GET");

// Empty: there is no such file.
std::string ReadAll(const std::string& path);
// Empty: there is no such file.
std::string FirstLine(const std::string& path);
// The number that a file begins with: a process id, a port. 0: there is none.
int ReadNumber(const std::string& path);

struct Usage {
  double cpu_seconds = 0;  // with all the children it has, and had
  double rss_mb = 0;       // of itself
  double peak_mb = 0;
};
// NotFound: no process of that id.
absl::StatusOr<Usage> ReadUsage(int pid);

// A service's counters, in sum since it was started.
struct ServiceCost {
  double rows = 0;
  double sent = 0;
  double received = 0;
  double calls = 0;  // to the API server, lists and watches aside
  double commits = 0;
  double commit_seconds = 0;
  double rollbacks = 0;
  Usage usage;
};

struct StackCost {
  std::map<std::string, ServiceCost> services;  // "queue", …
  std::map<std::string, Usage> others;          // "kafka", "kube-apiserver", …
  // Written so far: the segments of Kafka's topics, and PostgreSQL's write-ahead log.
  double kafka_bytes = 0;
  double wal_bytes = 0;
};

// A folder of tools/stack/start, or one of the same layout. Parts that do not run are left out.
class StackProbe {
 public:
  explicit StackProbe(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<StackCost> Read() const;
  // The sum over the labels of a service's metric whose name ends so; 0 if there is none.
  absl::StatusOr<double> Metric(const std::string& service, std::string_view suffix) const;
  // Nothing is on its way between the services any more: no lag, nothing unpublished.
  absl::StatusOr<bool> Quiet() const;

 private:
  absl::StatusOr<std::vector<MetricLine>> Scrape(const std::string& service) const;

  const std::string folder_;
};

// What `after` has more than `before`; sizes as in `after`.
StackCost operator-(const StackCost& after, const StackCost& before);

}  // namespace fluxqueue::bench
