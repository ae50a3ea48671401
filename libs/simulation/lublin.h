// When jobs arrive, how wide they are and how long they run: the model of Lublin and Feitelson
// ("The Workload on Parallel Supercomputers: Modeling the Characteristics of Rigid Jobs", JPDC
// 63(11), 2003), with the constants that they published for all jobs together. Pure: a stream of
// random numbers goes in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

namespace fluxqueue::simulation {

// The same seed gives the same numbers, with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  double Uniform();                          // above 0, below 1
  double Uniform(double from, double to);    // between them
  bool Chance(double share);                 // true in that share of the calls
  size_t Index(size_t count);                // below `count`, which is not 0
  double Normal();                           // mean 0, deviation 1
  double Gamma(double shape, double scale);  // both above 0

 private:
  std::mt19937_64 bits_;
};

class LublinModel {
 public:
  // Of the machine, at least 2.
  explicit LublinModel(int64_t processors);

  // Seconds since the midnight before the first job; rises from call to call. Fewer jobs come at
  // night: the time between two follows their daily cycle, in half hours.
  double NextArrival(Random* random);
  // 1 to all of the machine's, powers of two more often than others.
  int64_t Processors(Random* random) const;
  // Seconds, at least 1, at most two days. Wide jobs are more often long ones.
  double RunTime(int64_t processors, Random* random) const;

 private:
  static constexpr size_t kHalfHours = 48;

  const int64_t processors_;
  std::array<double, kHalfHours> rates_{};  // of arrivals; the mean is 1
  size_t half_hour_ = 0;                    // of the last arrival
  double day_s_ = 0;                        // when that half hour began, since the beginning
  double into_ = 0;                         // how much of its rate is used up
};

}  // namespace fluxqueue::simulation
