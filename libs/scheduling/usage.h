// What somebody holds, and what they used before, the longer ago the less.
//
// Used is counted in resource · seconds and halves with each half-life h. With nothing held
//
//   u(t) = u(t0) · 2^(−(t−t0)/h)
//
// and with r held all the time from t0 to t, which is what stands between two changes,
//
//   u(t) = u(t0) · 2^(−(t−t0)/h)  +  r · h/ln 2 · (1 − 2^(−(t−t0)/h))
//
// So the value and its time are all that is kept, it is brought forward when what is held changes,
// and no sweep ever touches those for whom nothing happens. h = 0: nothing is forgotten, and
// u(t) = u(t0) + r · (t−t0).
//
// Numbers are doubles, and 2^−x is made here of additions, multiplications and divisions in a fixed
// order (this library is compiled without contraction of them), so the same history gives the same
// bits on every machine. libm does not promise that. Pure, thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libs/scheduling/budgets.h"
#include "libs/scheduling/resources.h"

namespace fluxqueue::scheduling {

// 2^−x for x ≥ 0, to a relative error below 1e-15.
double HalfPower(double x);
// log2(x) for x ≥ 1, to about a millionth: for when to look again or to forget, never for an order.
double Log2(double x);

// Resource · seconds by the place of the resource: millicore·s, byte·s, thousandth of a gpu·s.
using Used = std::array<double, kShared>;

// Of the other resources, by name and sorted; in their unit · seconds. None of them is 0.
using OthersUsed = std::vector<std::pair<std::string, double>>;

struct Past {
  Used used = {};
  int64_t at_ms = 0;
  OthersUsed others = {};
  std::vector<Spent> spent = {};  // of a queue with budgets

  friend bool operator==(const Past&, const Past&) = default;
};

// How a past is brought forward.
struct UsageRules {
  int64_t half_life_ms = 0;
  bool counts_others = false;                    // resources that are no cpu, memory or gpu
  const std::vector<Budget>* budgets = nullptr;  // null: none
};

// The past at `now_ms`, with `held` held since past.at_ms. A time before that changes nothing, but
// what was spent is told of each budget.
Past BroughtForward(const Past& past,
                    const Resources& held,
                    int64_t now_ms,
                    const UsageRules& rules);

// From then on, with nothing held, less than a core, a GiB, a GPU and a unit of another resource
// for a second are left of it: nothing that an order would show. 0: never, as nothing is forgotten
// (h = 0), or it tells what was spent of a budget.
int64_t NothingFrom(const Past& past, int64_t half_life_ms);

// What is held on the average: a past of so much a second for ever has this used. For h = 0 it is
// the average over `age_ms`, which counts as one second at least.
double AverageOf(double used, int64_t half_life_ms, int64_t age_ms);

}  // namespace fluxqueue::scheduling
