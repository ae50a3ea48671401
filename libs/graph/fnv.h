// 64-bit FNV-1a: the same on every machine and in every version, which std::hash is not.
#pragma once

#include <cstdint>
#include <string_view>

namespace fluxqueue::graph {

class Fnv {
 public:
  // The length goes in too, so that ("ab", "c") and ("a", "bc") differ.
  void Add(std::string_view text) {
    Add(text.size());
    for (const char c : text) Byte(static_cast<unsigned char>(c));
  }
  void Add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) Byte((number >> shift) & 0xFF);
  }

  uint64_t value() const { return hash_; }

 private:
  void Byte(uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001B3; }

  uint64_t hash_ = 0xCBF29CE484222325;
};

}  // namespace fluxqueue::graph
