// metav1.LabelSelector of Kubernetes. Plain values; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fluxqueue {

using LabelMap = std::map<std::string, std::string, std::less<>>;

struct LabelExpression {
  std::string key;
  std::string op;  // In, NotIn, Exists, DoesNotExist
  std::vector<std::string> values;

  friend bool operator==(const LabelExpression&, const LabelExpression&) = default;
};

// All of it must hold; an empty one selects everything.
struct LabelSelector {
  LabelMap labels{};
  std::vector<LabelExpression> expressions{};

  bool Selects(const LabelMap& of) const;
  std::string Text() const;  // as kubectl takes it: "a=b,c in (d,e),!f"

  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

}  // namespace fluxqueue
