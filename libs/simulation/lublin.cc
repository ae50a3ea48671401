#include "libs/simulation/lublin.h"

#include <algorithm>
#include <cmath>

namespace fluxqueue::simulation {
namespace {

// Width: serial, then powers of two, then any; the logarithm is uniform in two stages.
constexpr double kSerial = 0.244;
constexpr double kPowerOfTwo = 0.576;
constexpr double kLow = 0.8;
constexpr double kMediumBelowHigh = 2.5;
constexpr double kFirstStage = 0.86;

// The logarithm of the run time is one of two gammas; the share of the first falls with the width.
constexpr double kShortShape = 4.2;
constexpr double kShortScale = 0.94;
constexpr double kLongShape = 312;
constexpr double kLongScale = 0.03;
constexpr double kShortByWidth = -0.0054;
constexpr double kShort = 0.78;
constexpr double kLogLongest = 12;

// The logarithm of the time between arrivals at the rush hours, and of all hours beside those; the
// hours of the arrivals, in half hours from the one in which the day begins.
constexpr double kBetweenShape = 10.2303;
constexpr double kBetweenScale = 0.4871;
constexpr double kAllBesideRush = 1.0225;
constexpr double kHoursShape = 8.1737;
constexpr double kHoursScale = 3.9631;
constexpr size_t kDayBegins = 11;
constexpr double kLogLongestBetween = 13;
constexpr double kHalfHour = 1800;

double HoursDensity(double x) {
  return std::pow(x, kHoursShape - 1) * std::exp(-x / kHoursScale);
}

// Simpson's rule; a factor is left out that all have in common.
double HoursBetween(double from, double to) {
  constexpr int kParts = 8;
  const double width = (to - from) / kParts;
  double sum = HoursDensity(from) + HoursDensity(to);
  for (int i = 1; i < kParts; ++i) sum += (i % 2 == 0 ? 2 : 4) * HoursDensity(from + i * width);
  return sum * width / 3;
}

}  // namespace

double Random::Uniform() {
  // 53 bits, and the middle between two of them.
  return (static_cast<double>(bits_() >> 11U) + 0.5) * 0x1p-53;
}

double Random::Uniform(double from, double to) {
  return from + (to - from) * Uniform();
}

bool Random::Chance(double share) {
  return Uniform() < share;
}

size_t Random::Index(size_t count) {
  return std::min(count - 1, static_cast<size_t>(Uniform() * static_cast<double>(count)));
}

double Random::Normal() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log(Uniform()));
  return radius * std::cos(kTwoPi * Uniform());
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double Random::Gamma(double shape, double scale) {
  if (shape < 1) return Gamma(shape + 1, scale) * std::pow(Uniform(), 1 / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = Normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(Uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

LublinModel::LublinModel(int64_t processors) : processors_(processors) {
  double sum = 0;
  for (size_t i = kDayBegins; i < kDayBegins + kHalfHours; ++i) {
    const auto middle = static_cast<double>(i);
    double& rate = rates_[(i - 1) % kHalfHours];
    rate = HoursBetween(middle - 0.5, middle + 0.5);
    sum += rate;
  }
  for (double& rate : rates_) rate *= static_cast<double>(kHalfHours) / sum;
}

double LublinModel::NextArrival(Random* random) {
  double logarithm = 0;
  do {
    logarithm = random->Gamma(kBetweenShape * kAllBesideRush, kBetweenScale);
  } while (logarithm > kLogLongestBetween);
  // So many half hours of the mean rate are to pass.
  into_ += std::exp(logarithm) / kHalfHour;
  while (into_ > rates_[half_hour_]) {
    into_ -= rates_[half_hour_];
    half_hour_ = (half_hour_ + 1) % kHalfHours;
    day_s_ += kHalfHour;
  }
  return day_s_ + kHalfHour * into_ / rates_[half_hour_];
}

int64_t LublinModel::Processors(Random* random) const {
  const double kind = random->Uniform();
  if (kind < kSerial) return 1;
  const double high = std::log2(static_cast<double>(processors_));
  const double medium = std::max(kLow, high - kMediumBelowHigh);
  double logarithm = random->Chance(kFirstStage) ? random->Uniform(std::min(kLow, medium), medium)
                                                 : random->Uniform(medium, high);
  if (kind < kSerial + kPowerOfTwo) logarithm = std::round(logarithm);
  return std::clamp<int64_t>(std::llround(std::exp2(logarithm)), 1, processors_);
}

double LublinModel::RunTime(int64_t processors, Random* random) const {
  const double is_short =
      std::clamp(kShortByWidth * static_cast<double>(processors) + kShort, 0.0, 1.0);
  double logarithm = 0;
  do {
    logarithm = random->Chance(is_short) ? random->Gamma(kShortShape, kShortScale)
                                         : random->Gamma(kLongShape, kLongScale);
  } while (logarithm > kLogLongest);
  return std::max(1.0, std::floor(std::exp(logarithm)));
}

}  // namespace fluxqueue::simulation
