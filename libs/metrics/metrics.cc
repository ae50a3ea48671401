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

LabelNames NamesOf(const Labels& labels) {
  LabelNames names;
  for (const auto& [name, value] : labels) names.push_back(name);
  return names;
}

}  // namespace

const std::vector<double>& LatencyBounds() {
  static const std::vector<double> bounds = {0.0005,
                                             0.001,
                                             0.0025,
                                             0.005,
                                             0.01,
                                             0.025,
                                             0.06,
                                             0.1,
                                             0.15,
                                             0.25,
                                             0.5,
                                             1,
                                             2.5,
                                             5,
                                             10,
                                             30,
                                             60,
                                             300};
  return bounds;
}

struct Registry::Impl {
  // Metrics of one name must be of one type; prometheus-cpp throws where they are not, and a source
  // is not known to it at all.
  void Claim(Description description) {
    const std::string name = description.name;
    CHECK(prometheus::CheckMetricName(name), "metric name {}", name);
    const std::lock_guard lock(mutex);
    const auto [entry, made] = descriptions.emplace(name, description);
    CHECK(made || entry->second == description,
          "metric {} is a {} already, or has other labels or another help",
          name,
          entry->second.type);
  }

  void AddSource(Source source, const char* type, LabelNames labels) {
    const std::lock_guard lock(mutex);
    const auto [entry, made] = descriptions.emplace(
        source.name, Description{source.name, type, source.help, std::move(labels)});
    CHECK(made, "metric {} is a {} already", source.name, entry->second.type);
    sources.push_back(std::move(source));
  }

  prometheus::Family<prometheus::Counter>& Counters(const std::string& name,
                                                    const std::string& help,
                                                    LabelNames labels) {
    Claim({name, "counter", help, std::move(labels)});
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Gauge>& Gauges(const std::string& name,
                                                const std::string& help,
                                                LabelNames labels) {
    Claim({name, "gauge", help, std::move(labels)});
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Histogram>& Histograms(const std::string& name,
                                                        const std::string& help,
                                                        LabelNames labels) {
    Claim({name, "histogram", help, std::move(labels)});
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  prometheus::Registry registry;
  mutable std::mutex mutex;
  std::map<std::string, Description> descriptions;  // by name; guarded by mutex
  std::vector<Source> sources;                      // guarded by mutex
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
  return Latency(&family_->Add(labels, bounds_));
}

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter Registry::MakeCounter(const std::string& name,
                              const std::string& help,
                              const Labels& labels) {
  return Counter(&impl_->Counters(name, help, NamesOf(labels)).Add(labels));
}

Gauge Registry::MakeGauge(const std::string& name, const std::string& help, const Labels& labels) {
  return Gauge(&impl_->Gauges(name, help, NamesOf(labels)).Add(labels));
}

Latency Registry::MakeLatency(const std::string& name,
                              const std::string& help,
                              const Labels& labels) {
  return Latency(&impl_->Histograms(name, help, NamesOf(labels)).Add(labels, LatencyBounds()));
}

Histogram Registry::MakeHistogram(const std::string& name,
                                  const std::string& help,
                                  std::vector<double> bounds,
                                  const Labels& labels) {
  CHECK(std::is_sorted(bounds.begin(), bounds.end()), "buckets of {} must rise", name);
  return Histogram(&impl_->Histograms(name, help, NamesOf(labels)).Add(labels, std::move(bounds)));
}

CounterFamily Registry::MakeCounters(const std::string& name,
                                     const std::string& help,
                                     LabelNames labels) {
  return CounterFamily(&impl_->Counters(name, help, std::move(labels)));
}

GaugeFamily Registry::MakeGauges(const std::string& name,
                                 const std::string& help,
                                 LabelNames labels) {
  return GaugeFamily(&impl_->Gauges(name, help, std::move(labels)));
}

LatencyFamily Registry::MakeLatencies(const std::string& name,
                                      const std::string& help,
                                      LabelNames labels,
                                      std::vector<double> bounds) {
  CHECK(std::is_sorted(bounds.begin(), bounds.end()), "buckets of {} must rise", name);
  return {&impl_->Histograms(name, help, std::move(labels)), std::move(bounds)};
}

void Registry::CountersFrom(const std::string& name,
                            const std::string& help,
                            LabelNames labels,
                            std::function<std::vector<Sample>()> read) {
  impl_->AddSource(
      {name, help, prometheus::MetricType::Counter, std::move(read)}, "counter", std::move(labels));
}

void Registry::GaugesFrom(const std::string& name,
                          const std::string& help,
                          LabelNames labels,
                          std::function<std::vector<Sample>()> read) {
  impl_->AddSource(
      {name, help, prometheus::MetricType::Gauge, std::move(read)}, "gauge", std::move(labels));
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

std::vector<Description> Registry::Describe() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<Description> all;
  for (const auto& [name, description] : impl_->descriptions) all.push_back(description);
  return all;
}

}  // namespace fluxqueue::metrics
