// Prometheus metrics. A component has one struct of them, with name, help and labels in one place,
// reached by verbs:
//
//   class BinderMetrics {
//    public:
//     explicit BinderMetrics(metrics::Registry& registry)
//         : bind_seconds_(registry.MakeLatency("fluxqueue_bind_seconds",
//                                              "From the allocation to the last binding.")),
//           failures_(registry.MakeCounters("fluxqueue_bind_failures_total",
//                                           "Jobs that could not be bound.", {"reason"})) {}
//     void Bound(Millis latency) { bind_seconds_.Observe(latency); }
//     void Failed(const std::string& reason) { failures_.With({{"reason", reason}}).Add(); }
//    private:
//     metrics::Latency bind_seconds_;
//     metrics::CounterFamily failures_;
//   };
//
// Counter, Gauge, Latency and Histogram are handles: copied freely, thread-safe, cheap (an atomic
// add, for the last two a short lock). They must not outlive the registry. No ids in labels: each
// combination of label values is kept for ever.
//
// Names are in Prometheus' style: fluxqueue_<what>_<unit>, base units, _total for counters. What
// several services count has one name and the label `component`: Prometheus Operator puts a label
// `service` of its own on all that it scrapes.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
template <typename T>
class Family;
}  // namespace prometheus

namespace fluxqueue::metrics {

using Labels = std::map<std::string, std::string>;
using LabelNames = std::vector<std::string>;

// The upper ends of buckets: seconds, from 0.5 ms to 30 s. 60 ms and 150 ms, the figures that a
// binding is measured against, are among them.
const std::vector<double>& LatencyBounds();

// Only rises.
class Counter {
 public:
  void Add(double by = 1);
  double Value() const;

 private:
  friend class Registry;
  friend class CounterFamily;
  explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
  prometheus::Counter* counter_;
};

class Gauge {
 public:
  void Set(double value);
  void Add(double by);
  double Value() const;

 private:
  friend class Registry;
  friend class GaugeFamily;
  explicit Gauge(prometheus::Gauge* gauge) : gauge_(gauge) {}
  prometheus::Gauge* gauge_;
};

// Counts by size: batches, rows, bytes.
class Histogram {
 public:
  void Observe(double value);

 private:
  friend class Registry;
  explicit Histogram(prometheus::Histogram* histogram) : histogram_(histogram) {}
  prometheus::Histogram* histogram_;
};

// A histogram of seconds.
class Latency {
 public:
  void Observe(std::chrono::duration<double> latency);

 private:
  friend class Registry;
  friend class LatencyFamily;
  explicit Latency(prometheus::Histogram* histogram) : histogram_(histogram) {}
  prometheus::Histogram* histogram_;
};

// One metric with several label values. With() takes a lock: keep the handle where it is used
// often.
class CounterFamily {
 public:
  Counter With(const Labels& labels);

 private:
  friend class Registry;
  explicit CounterFamily(prometheus::Family<prometheus::Counter>* family) : family_(family) {}
  prometheus::Family<prometheus::Counter>* family_;
};

class GaugeFamily {
 public:
  Gauge With(const Labels& labels);

 private:
  friend class Registry;
  explicit GaugeFamily(prometheus::Family<prometheus::Gauge>* family) : family_(family) {}
  prometheus::Family<prometheus::Gauge>* family_;
};

class LatencyFamily {
 public:
  Latency With(const Labels& labels);

 private:
  friend class Registry;
  LatencyFamily(prometheus::Family<prometheus::Histogram>* family, std::vector<double> bounds)
      : family_(family), bounds_(std::move(bounds)) {}
  prometheus::Family<prometheus::Histogram>* family_;
  std::vector<double> bounds_;
};

// A value that is read when somebody scrapes.
struct Sample {
  Labels labels;
  double value = 0;
};

struct Description {
  std::string name;
  std::string type;  // "counter", "gauge", "histogram"
  std::string help;
  LabelNames labels;

  friend bool operator==(const Description&, const Description&) = default;
};

// All metrics of a process. Thread-safe. A bad metric name, or one that is taken by another type,
// is a defect of ours and ends the process (CHECK).
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter MakeCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge MakeGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Latency MakeLatency(const std::string& name, const std::string& help, const Labels& labels = {});
  // `bounds`: the upper ends of the buckets, rising.
  Histogram MakeHistogram(const std::string& name,
                          const std::string& help,
                          std::vector<double> bounds,
                          const Labels& labels = {});

  // `labels`: what With() is given values for.
  CounterFamily MakeCounters(const std::string& name, const std::string& help, LabelNames labels);
  GaugeFamily MakeGauges(const std::string& name, const std::string& help, LabelNames labels);
  LatencyFamily MakeLatencies(const std::string& name,
                              const std::string& help,
                              LabelNames labels,
                              std::vector<double> bounds = LatencyBounds());

  // `read` is called at each scrape, from any thread, and must not call the registry. What it reads
  // must outlive the registry's last Text().
  void CountersFrom(const std::string& name,
                    const std::string& help,
                    LabelNames labels,
                    std::function<std::vector<Sample>()> read);
  void GaugesFrom(const std::string& name,
                  const std::string& help,
                  LabelNames labels,
                  std::function<std::vector<Sample>()> read);

  // Everything in Prometheus' text format (version 0.0.4), for /metrics.
  std::string Text() const;
  // All that were made, with and without a value, by name.
  std::vector<Description> Describe() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluxqueue::metrics
