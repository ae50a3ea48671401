#include "libs/kubernetes/pod_rules.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_text.h"
#include "libs/model/node_labels.h"

namespace fluxqueue::kubernetes {
namespace {

using nlohmann::json;

// Of the labels that the rules of one pod ask for.
constexpr size_t kMaxKeys = 64;

// The pods have the value that this one has under the key, or any other.
void Restrict(LabelSelector* selector,
              const std::vector<std::string>& keys,
              std::string_view op,
              const StringMap& labels) {
  for (const std::string& key : keys) {
    const auto own = labels.find(key);
    if (own == labels.end()) continue;
    LabelExpression more{key, std::string(op), {own->second}};
    auto& known = selector->expressions;
    if (std::find(known.begin(), known.end(), more) == known.end()) known.push_back(more);
  }
}

LabelSelector SelectorOf(const std::optional<LabelSelector>& pods, const std::string& key) {
  return pods.value_or(LabelSelector{.expressions = {{key, "In", {}}}});
}

json ToJson(const LabelSelector& selector) {
  json expressions = json::array();
  for (const LabelExpression& e : selector.expressions) {
    expressions.push_back({{"key", e.key}, {"op", e.op}, {"values", e.values}});
  }
  return {{"labels", selector.labels}, {"expressions", expressions}};
}

bool IsAbout(std::string_view space, const PodTerm& term) {
  return !term.selects_namespaces && std::all_of(term.namespaces.begin(),
                                                 term.namespaces.end(),
                                                 [&](const auto& name) { return name == space; });
}

absl::Status CheckNamespaces(std::string_view path, const PodTerm& term, std::string_view space) {
  if (IsAbout(space, term)) return absl::OkStatus();
  return InvalidArgument(
      "{}: looks at pods of other namespaces ({}), which cannot be queued for; allowed is the "
      "pod's own, \"{}\": leave namespaces and namespaceSelector out",
      path,
      term.selects_namespaces ? "namespaceSelector"
                              : fmt::format("{}", fmt::join(term.namespaces, ", ")),
      space);
}

LabelSelector SelectorOf(const PodTerm& term, const StringMap& labels) {
  LabelSelector selector = SelectorOf(term.pods, term.topology_key);
  Restrict(&selector, term.same_keys, "In", labels);
  Restrict(&selector, term.other_keys, "NotIn", labels);
  return selector;
}

LabelSelector SelectorOf(const SpreadTerm& term, const StringMap& labels) {
  LabelSelector selector = SelectorOf(term.pods, term.topology_key);
  Restrict(&selector, term.same_keys, "In", labels);
  return selector;
}

class Writer {
 public:
  Writer(std::string_view space, const StringMap& labels) : space_(space), labels_(labels) {}

  absl::Status Add(const char* kind, std::string_view path, const std::vector<PodTerm>& terms) {
    for (const PodTerm& term : terms) {
      RETURN_IF_ERROR(CheckNamespaces(path, term, space_));
      const LabelSelector selector = SelectorOf(term, labels_);
      const bool own = selector.Selects(labels_);
      if (own && kind == std::string_view("apart") && term.topology_key == model::kHostnameLabel) {
        made_.one_per_node = true;
      } else if (own) {
        made_.among_own = true;
      }
      rules_[kind].push_back({{"key", term.topology_key}, {"pods", ToJson(selector)}});
      Count(selector);
    }
    return absl::OkStatus();
  }

  void Add(const std::vector<SpreadTerm>& terms) {
    for (const SpreadTerm& term : terms) {
      const LabelSelector selector = SelectorOf(term, labels_);
      made_.among_own = made_.among_own || selector.Selects(labels_);
      rules_["spread"].push_back({{"key", term.topology_key},
                                  {"pods", ToJson(selector)},
                                  {"skew", term.max_skew},
                                  {"domains", term.min_domains},
                                  {"affinity", term.heeds_affinity},
                                  {"taints", term.heeds_taints}});
      Count(selector);
    }
  }

  absl::StatusOr<PodRules> Finish() && {
    made_.pod = JsonText({{"namespace", space_}, {"labels", labels_}});
    RETURN_IF_ERROR(CheckBytes("metadata.labels", made_.pod));
    if (count_ == 0) return std::move(made_);
    if (count_ > kMaxPodRules) {
      return InvalidArgument(
          "spec.affinity, spec.topologySpreadConstraints: have {} required rules between pods; "
          "allowed are at most {}",
          count_,
          kMaxPodRules);
    }
    if (keys_ > kMaxKeys) {
      return InvalidArgument(
          "spec.affinity, spec.topologySpreadConstraints: the required rules between pods ask for "
          "{} labels; allowed are at most {}",
          keys_,
          kMaxKeys);
    }
    made_.rules = JsonText(rules_);
    RETURN_IF_ERROR(CheckBytes("spec.affinity, spec.topologySpreadConstraints", made_.rules));
    return std::move(made_);
  }

 private:
  void Count(const LabelSelector& selector) {
    ++count_;
    keys_ += selector.labels.size() + selector.expressions.size();
  }

  static absl::Status CheckBytes(std::string_view what, const std::string& text) {
    if (text.size() <= kMaxPodRuleBytes) return absl::OkStatus();
    return InvalidArgument("{}: have {} bytes in the jobspec; allowed are at most {}",
                           what,
                           text.size(),
                           kMaxPodRuleBytes);
  }

  std::string_view space_;
  const StringMap& labels_;
  PodRules made_;
  json rules_ = json::object();
  size_t count_ = 0;
  size_t keys_ = 0;
};

class Preferred {
 public:
  void Add(const char* kind, const LabelSelector& selector, json term) {
    const size_t keys = selector.labels.size() + selector.expressions.size();
    const size_t bytes = JsonText(term).size() + 1;
    if (count_ == kMaxPodRules || keys > keys_ || bytes > bytes_) return;
    ++count_;
    keys_ -= keys;
    bytes_ -= bytes;
    terms_[kind].push_back(std::move(term));
  }

  std::string Finish() && { return count_ == 0 ? "" : JsonText(terms_); }

 private:
  static constexpr std::string_view kAround = R"({"near":[],"even":[]})";

  json terms_ = json::object();
  size_t count_ = 0;
  size_t keys_ = kMaxKeys;
  size_t bytes_ = kMaxPodPreferenceBytes - kAround.size();
};

std::string PreferredOf(const PodSpec& pod, std::string_view space, const StringMap& labels) {
  std::vector<const PreferredPodTerm*> terms;
  for (const PreferredPodTerm& term : pod.preferred_pods) {
    const bool weighs = term.weight != 0 && std::abs(term.weight) <= 100;
    if (weighs && IsAbout(space, term.term)) terms.push_back(&term);
  }
  std::stable_sort(terms.begin(), terms.end(), [](const auto* a, const auto* b) {
    return std::abs(a->weight) > std::abs(b->weight);
  });
  Preferred preferred;
  for (const PreferredPodTerm* term : terms) {
    const LabelSelector selector = SelectorOf(term->term, labels);
    preferred.Add(
        "near",
        selector,
        {{"key", term->term.topology_key}, {"pods", ToJson(selector)}, {"weight", term->weight}});
  }
  for (const SpreadTerm& term : pod.preferred_spread) {
    const LabelSelector selector = SelectorOf(term, labels);
    preferred.Add("even",
                  selector,
                  {{"key", term.topology_key},
                   {"pods", ToJson(selector)},
                   {"affinity", term.heeds_affinity},
                   {"taints", term.heeds_taints}});
  }
  return std::move(preferred).Finish();
}

}  // namespace

absl::StatusOr<PodRules> MakePodRules(const PodSpec& pod,
                                      std::string_view space,
                                      const StringMap& labels) {
  Writer writer(space, labels);
  RETURN_IF_ERROR(
      writer.Add("apart", "spec.affinity.podAntiAffinity: a required term", pod.apart_from_pods));
  RETURN_IF_ERROR(
      writer.Add("beside", "spec.affinity.podAffinity: a required term", pod.beside_pods));
  writer.Add(pod.spread);
  ASSIGN_OR_RETURN(PodRules rules, std::move(writer).Finish());
  rules.preferred = PreferredOf(pod, space, labels);
  return rules;
}

}  // namespace fluxqueue::kubernetes
