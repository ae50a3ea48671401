#include "libs/kubernetes/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::kubernetes {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
// A mantissa with one more digit fits into 64 bits.
constexpr Wide kMantissaMax = std::numeric_limits<uint64_t>::max() / 10 - 1;
// Beyond it nothing but 0 is less than kMax, or more than 1.
constexpr int64_t kMostExponent = 1'000'000'000;

// amount = mantissa × 10^decimal × 2^binary, and a little more where `rest` says so.
struct Number {
  Wide mantissa = 0;
  bool rest = false;
  int64_t decimal = 0;
  int binary = 0;
};

struct Suffix {
  std::string_view text;
  int decimal;
  int binary;
};

constexpr std::array<Suffix, 16> kSuffixes = {{{"", 0, 0},
                                               {"n", -9, 0},
                                               {"u", -6, 0},
                                               {"m", -3, 0},
                                               {"k", 3, 0},
                                               {"M", 6, 0},
                                               {"G", 9, 0},
                                               {"T", 12, 0},
                                               {"P", 15, 0},
                                               {"E", 18, 0},
                                               {"Ki", 0, 10},
                                               {"Mi", 0, 20},
                                               {"Gi", 0, 30},
                                               {"Ti", 0, 40},
                                               {"Pi", 0, 50},
                                               {"Ei", 0, 60}}};

// Digits with at most one point, as many as there are; false if there is none.
bool TakeDigits(std::string_view& text, Number* number) {
  bool point = false;
  bool digits = false;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      digits = true;
      if (number->mantissa <= kMantissaMax) {
        number->mantissa = number->mantissa * 10 + static_cast<unsigned>(c - '0');
        if (point) --number->decimal;
      } else {
        number->rest = number->rest || c != '0';
        if (!point) ++number->decimal;
      }
    } else {
      break;
    }
    text.remove_prefix(1);
  }
  return digits;
}

// "+3", "-3", "3".
bool TakeExponent(std::string_view text, Number* number) {
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (text.empty() || text.front() == '-') return false;
  }
  int64_t exponent = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, exponent);
  if (stop != end || error == std::errc::invalid_argument) return false;
  if (error == std::errc::result_out_of_range) {
    exponent = text.front() == '-' ? -kMostExponent : kMostExponent;
  }
  number->decimal += std::clamp(exponent, -kMostExponent, kMostExponent);
  return true;
}

// "e3", "E-3" or one of the suffixes.
bool TakeScale(std::string_view text, Number* number) {
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E') && text[1] != 'i') {
    return TakeExponent(text.substr(1), number);
  }
  const auto* suffix = std::find_if(
      kSuffixes.begin(), kSuffixes.end(), [&](const Suffix& s) { return s.text == text; });
  if (suffix == kSuffixes.end()) return false;
  number->decimal += suffix->decimal;
  number->binary += suffix->binary;
  return true;
}

// Rounded up; kMax where it is more.
int64_t Value(const Number& number) {
  Wide value = number.mantissa << number.binary;  // below 2^64 × 2^60
  bool rest = number.rest;
  for (int64_t i = number.decimal; i < 0 && value != 0; ++i) {
    rest = rest || value % 10 != 0;
    value /= 10;
  }
  if (rest) ++value;
  for (int64_t i = number.decimal; i > 0 && value != 0; --i) {
    if (value > static_cast<Wide>(kMax)) return kMax;
    value *= 10;
  }
  return value > static_cast<Wide>(kMax) ? kMax : static_cast<int64_t>(value);
}

bool IsBytes(std::string_view resource) {
  return resource == "memory" || resource == "storage" || resource == "ephemeral-storage" ||
         resource.starts_with("hugepages-");
}

}  // namespace

absl::StatusOr<int64_t> ParseQuantity(std::string_view resource, std::string_view text) {
  std::string_view rest = text;
  if (!rest.empty() && rest.front() == '+') rest.remove_prefix(1);
  if (!rest.empty() && rest.front() == '-') {
    return InvalidArgument("\"{}\": an amount must not be negative", text);
  }
  Number number;
  if (!TakeDigits(rest, &number) || !TakeScale(rest, &number)) {
    return InvalidArgument(
        "\"{}\" is not a quantity; allowed are numbers such as 2, 0.5, 1500m, 3Gi, 1e3", text);
  }
  if (resource == "cpu") number.decimal += 3;
  return Value(number);
}

std::string FormatQuantity(std::string_view resource, int64_t amount) {
  if (resource == "cpu") {
    return amount % 1000 == 0 ? fmt::format("{}", amount / 1000) : fmt::format("{}m", amount);
  }
  if (!IsBytes(resource) || amount == 0) return fmt::format("{}", amount);
  static constexpr std::array<const char*, 7> kUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  size_t unit = 0;
  for (; amount % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return fmt::format("{}{}", amount, kUnits[unit]);
}

std::string FormatAmounts(const Amounts& amounts) {
  std::string out;
  for (const auto& [resource, amount] : amounts) {
    if (!out.empty()) out += ", ";
    out += fmt::format("{} {}", resource, FormatQuantity(resource, amount));
  }
  return out;
}

void Add(Amounts& to, const Amounts& more) {
  for (const auto& [resource, amount] : more) {
    int64_t& sum = to[resource];
    sum = amount > kMax - sum ? kMax : sum + amount;
  }
}

void RaiseTo(Amounts& to, const Amounts& least) {
  for (const auto& [resource, amount] : least) {
    int64_t& held = to[resource];
    held = std::max(held, amount);
  }
}

void FillMissing(Amounts& to, const Amounts& from) {
  to.insert(from.begin(), from.end());
}

}  // namespace fluxqueue::kubernetes
