#include "libs/scheduling/usage.h"

#include <algorithm>
#include <cmath>

namespace fluxqueue::scheduling {
namespace {

constexpr double kLn2 = 0.693147180559945309417232;
// Of each for a second.
constexpr Used kNothing = {1000, 1 << 30, kWholeGpu};

// Both lists are sorted by name.
OthersUsed OthersForward(const OthersUsed& used, const Resources& held, double kept, double time) {
  OthersUsed next;
  auto past = used.begin();
  auto now = held.others().begin();
  while (past != used.end() || now != held.others().end()) {
    const bool has_past =
        past != used.end() && (now == held.others().end() || past->first <= now->first);
    const bool has_now =
        now != held.others().end() && (past == used.end() || now->first <= past->first);
    const double sum = (has_past ? past->second * kept : 0) +
                       (has_now ? static_cast<double>(now->second) * time : 0);
    if (sum > 0) next.emplace_back(has_past ? past->first : now->first, sum);
    if (has_past) ++past;
    if (has_now) ++now;
  }
  return next;
}

}  // namespace

double HalfPower(double x) {
  if (x <= 0) return 1;
  if (x >= 1000) return 0;
  const int whole = static_cast<int>(x);
  const double y = (x - whole) * kLn2;  // 0 ≤ y < ln 2
  // e^−y = 1 − y(1 − y/2(1 − y/3(…))): 20 terms leave less than 1e-20.
  double sum = 1;
  for (int n = 20; n >= 1; --n) sum = 1 - y / n * sum;
  return std::ldexp(sum, -whole);
}

double Log2(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // 0.5 ≤ fraction < 1
  // ln via the area tangent: ln f = 2·artanh((f−1)/(f+1)).
  const double z = (fraction - 1) / (fraction + 1);
  double sum = 0;
  double power = z;
  for (int n = 1; n <= 15; n += 2) {
    sum += power / n;
    power *= z * z;
  }
  return exponent + 2 * sum / kLn2;
}

Past BroughtForward(const Past& past,
                    const Resources& held,
                    int64_t now_ms,
                    const UsageRules& rules) {
  Past next = past;
  if (rules.budgets != nullptr && !rules.budgets->empty()) {
    next.spent = SpentOf(*rules.budgets, past.spent, held, past.at_ms, now_ms);
  }
  if (now_ms <= past.at_ms) return next;
  next.at_ms = now_ms;
  const double seconds = static_cast<double>(now_ms - past.at_ms) / 1000;
  const double half_life = static_cast<double>(rules.half_life_ms) / 1000;
  const double kept = rules.half_life_ms > 0 ? HalfPower(seconds / half_life) : 1;
  const double time = rules.half_life_ms > 0 ? half_life / kLn2 * (1 - kept) : seconds;
  for (size_t i = 0; i < kShared; ++i) {
    next.used[i] = next.used[i] * kept + static_cast<double>(held[i]) * time;
  }
  if (rules.counts_others) next.others = OthersForward(past.others, held, kept, time);
  return next;
}

int64_t NothingFrom(const Past& past, int64_t half_life_ms) {
  if (half_life_ms <= 0 || !past.spent.empty()) return 0;
  double most = 1;
  for (size_t i = 0; i < kShared; ++i) most = std::max(most, past.used[i] / kNothing[i]);
  for (const auto& [name, used] : past.others) most = std::max(most, used);
  return past.at_ms + static_cast<int64_t>(Log2(most) * static_cast<double>(half_life_ms));
}

double AverageOf(double used, int64_t half_life_ms, int64_t age_ms) {
  if (half_life_ms > 0) return used * kLn2 / (static_cast<double>(half_life_ms) / 1000);
  return used / (static_cast<double>(std::max<int64_t>(age_ms, 1000)) / 1000);
}

}  // namespace fluxqueue::scheduling
