#include "libs/metrics/metrics.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <sstream>
#include <utility>

#include <prometheus/check_names.h>
#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "libs/base/check.h"

namespace fluxqueue::metrics {
namespace {

// Seconds. 60 ms and 150 ms, the figures that a binding is measured against, are bounds.
const prometheus::Histogram::BucketBoundaries& LatencyBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.06, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30};
  return buckets;
}

// A metric whose values are read at the time of the scrape.
struct Source {
  std::string name;
  std::string help;
  prometheus::MetricType type;
  std::function<std::vector<Sample>()> read;
};

prometheus::MetricFamily Collect(const Source& source) {
  prometheus::MetricFamily family;
  family.name = source.name;
  family.help = source.help;
  family.type = source.type;
  for (const Sample& sample : source.read()) {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
    metric.counter.value = sample.value;
    metric.gauge.value = sample.value;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

}  // namespace

struct Registry::Impl {
  // Metrics of one name must be of one type; prometheus-cpp throws where they are not, and a source
  // is not known to it at all.
  void Claim(const std::string& name, const std::string& type) {
    CHECK(prometheus::CheckMetricName(name), "metric name {}", name);
    const std::lock_guard lock(mutex);
    const auto [entry, made] = types.emplace(name, type);
    CHECK(made || (entry->second == type && type != "source"),
          "metric {} is a {} already",
          name,
          entry->second);
  }

  void AddSource(Source source) {
    Claim(source.name, "source");
    const std::lock_guard lock(mutex);
    sources.push_back(std::move(source));
  }

  prometheus::Family<prometheus::Counter>& Counters(const std::string& name,
                                                    const std::string& help) {
    Claim(name, "counter");
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Gauge>& Gauges(const std::string& name, const std::string& help) {
    Claim(name, "gauge");
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Histogram>& Histograms(const std::string& name,
                                                        const std::string& help) {
    Claim(name, "histogram");
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  prometheus::Registry registry;
  mutable std::mutex mutex;
  std::map<std::string, std::string> types;  // guarded by mutex
  std::vector<Source> sources;               // guarded by mutex
};

void Counter::Add(double by) {
  counter_->Increment(by);
}
double Counter::Value() const {
  return counter_->Value();
}

void Gauge::Set(double value) {
  gauge_->Set(value);
}
void Gauge::Add(double by) {
  gauge_->Increment(by);
}
double Gauge::Value() const {
  return gauge_->Value();
}

void Histogram::Observe(double value) {
  histogram_->Observe(value);
}

void Latency::Observe(std::chrono::duration<double> latency) {
  histogram_->Observe(latency.count());
}

Counter CounterFamily::With(const Labels& labels) {
  return Counter(&family_->Add(labels));
}
Gauge GaugeFamily::With(const Labels& labels) {
  return Gauge(&family_->Add(labels));
}
Latency LatencyFamily::With(const Labels& labels) {
  return Latency(&family_->Add(labels, LatencyBuckets()));
}

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter Registry::MakeCounter(const std::string& name,
                              const std::string& help,
                              const Labels& labels) {
  return Counter(&impl_->Counters(name, help).Add(labels));
}

Gauge Registry::MakeGauge(const std::string& name, const std::string& help, const Labels& labels) {
  return Gauge(&impl_->Gauges(name, help).Add(labels));
}

Latency Registry::MakeLatency(const std::string& name,
                              const std::string& help,
                              const Labels& labels) {
  return Latency(&impl_->Histograms(name, help).Add(labels, LatencyBuckets()));
}

Histogram Registry::MakeHistogram(const std::string& name,
                                  const std::string& help,
                                  std::vector<double> bounds,
                                  const Labels& labels) {
  CHECK(std::is_sorted(bounds.begin(), bounds.end()), "buckets of {} must rise", name);
  return Histogram(&impl_->Histograms(name, help).Add(labels, std::move(bounds)));
}

CounterFamily Registry::MakeCounters(const std::string& name, const std::string& help) {
  return CounterFamily(&impl_->Counters(name, help));
}

GaugeFamily Registry::MakeGauges(const std::string& name, const std::string& help) {
  return GaugeFamily(&impl_->Gauges(name, help));
}

LatencyFamily Registry::MakeLatencies(const std::string& name, const std::string& help) {
  return LatencyFamily(&impl_->Histograms(name, help));
}

void Registry::CountersFrom(const std::string& name,
                            const std::string& help,
                            std::function<std::vector<Sample>()> read) {
  impl_->AddSource({name, help, prometheus::MetricType::Counter, std::move(read)});
}

void Registry::GaugesFrom(const std::string& name,
                          const std::string& help,
                          std::function<std::vector<Sample>()> read) {
  impl_->AddSource({name, help, prometheus::MetricType::Gauge, std::move(read)});
}

std::string Registry::Text() const {
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  std::vector<Source> sources;
  {
    // The readers run without the lock: what they take must not be ordered against it.
    const std::lock_guard lock(impl_->mutex);
    sources = impl_->sources;
  }
  for (const Source& source : sources) families.push_back(Collect(source));
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) {
    return a.name < b.name;
  });
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace fluxqueue::metrics
