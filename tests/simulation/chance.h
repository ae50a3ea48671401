// Random numbers that are the same everywhere (splitmix64).
#pragma once

#include <cstdint>

namespace fluxqueue::simulation {

class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 0 … n-1. REQUIRES: n > 0.
  uint64_t Pick(uint64_t n) { return Next() % n; }
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(Pick(static_cast<uint64_t>(most - least + 1)));
  }
  bool OneIn(uint64_t n) { return n != 0 && Pick(n) == 0; }
  // Another sequence, that does not depend on how much of this one is used later.
  Chance Fork() { return Chance(Next()); }

 private:
  uint64_t state_;
};

}  // namespace fluxqueue::simulation
