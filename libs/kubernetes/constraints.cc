#include "libs/kubernetes/constraints.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_text.h"

namespace fluxqueue::kubernetes {
namespace {

constexpr std::string_view kTermsPath =
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

std::string List(std::string_view op, const std::vector<std::string>& items) {
  return fmt::format("{{\"{}\":[{}]}}", op, fmt::join(items, ","));
}

// One operand needs no operator around it.
std::string Joined(std::string_view op, const std::vector<std::string>& items) {
  return items.size() == 1 ? items.front() : List(op, items);
}

std::string Not(const std::string& constraint) {
  return List("not", {constraint});
}

std::string Property(std::string_view key) {
  return List("properties", {JsonString(key)});
}

std::string AnyOf(const NodeExpression& expression) {
  std::vector<std::string> any;
  for (const std::string& value : expression.values) {
    any.push_back(Property(fmt::format("{}={}", expression.key, value)));
  }
  return Joined("or", any);
}

// "gt" or "lt".
std::string Compared(std::string_view op, const NodeExpression& e) {
  return List(op, {JsonString(fmt::format("{}={}", e.key, e.values.front()))});
}

std::string OfLabel(const NodeExpression& expression) {
  if (expression.op == "In") return AnyOf(expression);
  if (expression.op == "NotIn") return Not(AnyOf(expression));
  if (expression.op == "Gt") return Compared("gt", expression);
  if (expression.op == "Lt") return Compared("lt", expression);
  if (expression.op == "Exists") return Property(expression.key);
  return Not(Property(expression.key));  // DoesNotExist: CheckExpressible let nothing else pass
}

std::string OfField(const NodeExpression& expression) {
  std::vector<std::string> names;
  for (const std::string& name : expression.values) names.push_back(JsonString(name));
  std::string hosts = List("hostlist", names);
  return expression.op == "In" ? hosts : Not(hosts);
}

bool IsComparison(const NodeExpression& e) {
  return e.op == "Gt" || e.op == "Lt";
}

// As kube-scheduler reads it: a label's value has no sign.
bool IsWholeNumber(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && number >= 0;
}

// The first that compares with what is no number; null: there is none. No node meets its term.
const NodeExpression* FirstBadComparison(const NodeTerm& term) {
  const auto bad =
      std::find_if(term.expressions.begin(), term.expressions.end(), [](const NodeExpression& e) {
        return IsComparison(e) && !IsWholeNumber(e.values.front());
      });
  return bad == term.expressions.end() ? nullptr : &*bad;
}

bool MatchesNothing(const NodeTerm& term) {
  const bool empty = term.expressions.empty() && term.fields.empty();
  return empty || FirstBadComparison(term) != nullptr;
}

std::string OfTerm(const NodeTerm& term) {
  std::vector<std::string> all;
  for (const NodeExpression& expression : term.expressions) all.push_back(OfLabel(expression));
  for (const NodeExpression& field : term.fields) all.push_back(OfField(field));
  return Joined("and", all);
}

std::string OfTerms(const std::vector<NodeTerm>& terms) {
  std::vector<std::string> any;
  for (const NodeTerm& term : terms) {
    if (!MatchesNothing(term)) any.push_back(OfTerm(term));  // else it adds nothing to an `or`
  }
  return Joined("or", any);
}

// Those of PreferNoSchedule alone (`soft`), or all others.
std::vector<std::string> Tolerations(const std::vector<Toleration>& tolerations, bool soft) {
  std::set<std::string> forms;
  for (const Toleration& t : tolerations) {
    if ((t.effect == "PreferNoSchedule") != soft) continue;
    std::string form = t.key.empty() ? "*" : t.key;
    if (t.op != "Exists") form += "=" + t.value;
    if (!t.effect.empty()) form += ":" + t.effect;
    forms.insert(JsonString(form));
  }
  return {forms.begin(), forms.end()};
}

absl::Status CheckExpression(const NodeExpression& e, std::string_view path) {
  if (IsComparison(e)) {
    if (e.values.size() == 1) return absl::OkStatus();
    return InvalidArgument(
        "{}: {} on \"{}\" has {} values; give one", path, e.op, e.key, e.values.size());
  }
  const bool lists = e.op == "In" || e.op == "NotIn";
  if (!lists && e.op != "Exists" && e.op != "DoesNotExist") {
    return InvalidArgument(
        "{}: operator \"{}\" on \"{}\": allowed are In, NotIn, Exists, DoesNotExist, Gt and Lt",
        path,
        e.op,
        e.key);
  }
  if (lists && e.values.empty()) {
    return InvalidArgument("{}: {} on \"{}\" has no values; give at least one", path, e.op, e.key);
  }
  return absl::OkStatus();
}

absl::Status CheckTerm(const NodeTerm& term, std::string_view path) {
  const std::string expressions = fmt::format("{}.matchExpressions", path);
  const std::string fields = fmt::format("{}.matchFields", path);
  for (const NodeExpression& e : term.expressions) RETURN_IF_ERROR(CheckExpression(e, expressions));
  for (const NodeExpression& e : term.fields) {
    RETURN_IF_ERROR(CheckExpression(e, fields));
    if (e.key != "metadata.name" || (e.op != "In" && e.op != "NotIn")) {
      return InvalidArgument(
          "{}: {} of \"{}\": allowed are In and NotIn of metadata.name", fields, e.op, e.key);
    }
  }
  return absl::OkStatus();
}

// What the expression takes in the constraint, but for what JSON escapes.
size_t BytesOf(const NodeExpression& e) {
  constexpr size_t kAround = std::string_view(R"({"properties":["="]},)").size();
  size_t bytes = e.key.size() + kAround;
  for (const std::string& value : e.values) bytes += e.key.size() + value.size() + kAround;
  return bytes;
}

absl::Status CheckLength(const std::vector<NodeTerm>& terms) {
  size_t bytes = 0;
  for (const NodeTerm& term : terms) {
    for (const NodeExpression& e : term.expressions) bytes += BytesOf(e);
    for (const NodeExpression& e : term.fields) bytes += BytesOf(e);
  }
  if (bytes <= kMaxAffinityBytes) return absl::OkStatus();
  return InvalidArgument(
      "{}: its expressions take {} bytes, each value with its key; allowed are "
      "{}: name fewer values, or label the nodes by what they have in common",
      kTermsPath,
      bytes,
      kMaxAffinityBytes);
}

// REQUIRES: no term matches any node.
absl::Status RefuseTerms(const std::vector<NodeTerm>& terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    const NodeExpression* bad = FirstBadComparison(terms[i]);
    if (bad == nullptr) continue;
    return InvalidArgument(
        "{}[{}].matchExpressions: {} on \"{}\" compares with \"{}\", which no label is more or "
        "less "
        "than; give a whole number",
        kTermsPath,
        i,
        bad->op,
        bad->key,
        bad->values.front());
  }
  return InvalidArgument("{}: an empty term matches no node; give an expression or remove it",
                         kTermsPath);
}

absl::Status CheckNodeTerms(const PodSpec& pod) {
  if (!pod.required_node_terms) return absl::OkStatus();
  const std::vector<NodeTerm>& terms = *pod.required_node_terms;
  RETURN_IF_ERROR(CheckLength(terms));
  for (size_t i = 0; i < terms.size(); ++i) {
    RETURN_IF_ERROR(CheckTerm(terms[i], fmt::format("{}[{}]", kTermsPath, i)));
  }
  if (std::all_of(terms.begin(), terms.end(), MatchesNothing)) return RefuseTerms(terms);
  return absl::OkStatus();
}

// What labels, their values and the names of nodes are made of.
bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("-_./").find(c) != std::string_view::npos;
  });
}

bool ArePlain(const std::vector<NodeExpression>& expressions) {
  return std::all_of(expressions.begin(), expressions.end(), [](const NodeExpression& e) {
    return !e.key.empty() && IsPlain(e.key) &&
           std::all_of(e.values.begin(), e.values.end(), IsPlain);
  });
}

// It is one, and some node could meet it.
bool IsHeeded(const PreferredTerm& preferred) {
  const NodeTerm& term = preferred.term;
  return preferred.weight >= 1 && preferred.weight <= 100 && CheckTerm(term, "").ok() &&
         !MatchesNothing(term) && ArePlain(term.expressions) && ArePlain(term.fields);
}

struct Size {
  size_t values = 0;
  size_t bytes = 0;
};

Size SizeOf(const NodeTerm& term) {
  constexpr size_t kAround = std::string_view(R"({"weight":100,"constraint":{"and":[]}},)").size();
  Size size{.values = 0, .bytes = kAround};
  for (const auto* expressions : {&term.expressions, &term.fields}) {
    for (const NodeExpression& e : *expressions) {
      size.values += std::max<size_t>(1, e.values.size());
      size.bytes += BytesOf(e);
    }
  }
  return size;
}

// As long as JSON may write them.
Size SizeOfSoftOnes(const std::vector<Toleration>& tolerations) {
  constexpr size_t kEscaped = 6;
  constexpr size_t kAround = std::string_view(R"("=:PreferNoSchedule",)").size();
  Size size;
  for (const Toleration& t : tolerations) {
    if (t.effect != "PreferNoSchedule") continue;
    ++size.values;
    size.bytes += kEscaped * (t.key.size() + t.value.size()) + kAround;
  }
  return size;
}

// For what is preferred.
class Room {
 public:
  // False, and nothing is taken, where there is not so much left.
  bool Take(const Size& size) {
    if (size.values > values_ || size.bytes > bytes_) return false;
    values_ -= size.values;
    bytes_ -= size.bytes;
    return true;
  }

 private:
  size_t values_ = kMaxPreferredValues;
  size_t bytes_ =
      kMaxPreferencesBytes - std::string_view(R"({"terms":[],"tolerations":[]})").size();
};

// A slot has at most 64 resources (libs/graph/jobspec.h).
constexpr size_t kMaxHostPorts = 32;

absl::Status CheckPorts(const PodSpec& pod) {
  size_t ports = 0;
  for (const Container& container : pod.containers) ports += container.host_ports.size();
  for (const Container& container : pod.init_containers) ports += container.host_ports.size();
  if (ports <= kMaxHostPorts) return absl::OkStatus();
  return InvalidArgument(
      "spec.containers: have {} host ports; allowed are at most {}", ports, kMaxHostPorts);
}

}  // namespace

absl::Status CheckExpressible(const PodSpec& pod) {
  RETURN_IF_ERROR(CheckPorts(pod));
  return CheckNodeTerms(pod);
}

absl::StatusOr<std::string> MakeConstraint(const PodSpec& pod) {
  RETURN_IF_ERROR(CheckExpressible(pod));
  std::vector<std::string> all;
  if (!pod.node_selector.empty()) {
    std::vector<std::string> properties;
    for (const auto& [key, value] : pod.node_selector) {
      properties.push_back(JsonString(fmt::format("{}={}", key, value)));
    }
    all.push_back(List("properties", properties));
  }
  if (pod.required_node_terms) all.push_back(OfTerms(*pod.required_node_terms));
  all.push_back(List("tolerations", Tolerations(pod.tolerations, /*soft=*/false)));
  return List("and", all);
}

std::string MakePreferences(const PodSpec& pod) {
  std::vector<const PreferredTerm*> terms;
  for (const PreferredTerm& term : pod.preferred_node_terms) {
    if (IsHeeded(term)) terms.push_back(&term);
  }
  std::stable_sort(terms.begin(), terms.end(), [](const PreferredTerm* a, const PreferredTerm* b) {
    return a->weight > b->weight;
  });
  Room room;
  std::vector<std::string> tolerations;
  if (room.Take(SizeOfSoftOnes(pod.tolerations))) {
    tolerations = Tolerations(pod.tolerations, /*soft=*/true);
  }
  std::vector<std::string> written;
  for (const PreferredTerm* term : terms) {
    if (!room.Take(SizeOf(term->term))) continue;
    written.push_back(
        fmt::format(R"({{"weight":{},"constraint":{}}})", term->weight, OfTerm(term->term)));
  }
  if (written.empty() && tolerations.empty()) return {};
  return fmt::format(R"({{"terms":[{}],"tolerations":[{}]}})",
                     fmt::join(written, ","),
                     fmt::join(tolerations, ","));
}

}  // namespace fluxqueue::kubernetes
