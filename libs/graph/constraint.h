// RFC 31 constraints on nodes: `properties`, `hostlist`, `ranks`, `and`, `or`, `not` (of the
// `and` of its values). An object has one operator; without one it is true for every node.
//
// Kubernetes labels are the properties: "key" asks for the label, "key=value" for its value, a
// leading "^" for the opposite. Two extensions: tolerations (see Toleration), and `gt` and `lt` of
// "key=5": the label is a whole number (of 64 bits) that is greater, or less, than this one.
//
// Values; immutable after parsing; never throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "libs/graph/hostlist.h"
#include "libs/graph/idset.h"
#include "libs/graph/types.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

inline constexpr size_t kMaxHosts = 65'536;
// Ranges of ranks in one constraint.
inline constexpr size_t kMaxRankRanges = 65'536;

// One entry of the operator `tolerations`: "key=value:Effect", "key:Effect" (whatever the value),
// "key" or "key=value" (all effects), "*" (everything), "*:Effect".
class Toleration {
 public:
  static absl::StatusOr<Toleration> Parse(const std::string& text, const std::string& path);

  bool Tolerates(const Taint& taint) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool any_key_ = false;
  bool any_value_ = true;
  std::string key_;
  std::string value_;
  std::string effect_;  // empty: all
};

// Of 64 bits. Unset: the text is none.
std::optional<int64_t> WholeNumber(std::string_view text);

// What a constraint looks at.
struct ConstraintSubject {
  std::string_view name;
  int64_t rank = -1;         // -1: none, which is in no list of ranks
  const Labels& properties;  // sorted by key
};

// A boolean expression over one node's name, rank and labels. Default: true for every node.
class Constraint {
 public:
  enum class Kind { kAnd, kOr, kNot, kProperty, kGreater, kLess, kHosts, kRanks };

  Constraint() = default;

  // `path` names the value in errors. The operator `tolerations` is taken out of the top level (or
  // of an `and` there) into `tolerations`, which stays empty when there is none.
  // InvalidArgument: an unknown operator, a value of the wrong type, a hostlist that does not
  // parse, more than kMaxHosts hosts in all, no number to compare with, `tolerations` twice or
  // deeper inside.
  static absl::StatusOr<Constraint> Parse(const nlohmann::json& value,
                                          const std::string& path,
                                          std::optional<std::vector<Toleration>>* tolerations);

  static Constraint And(std::vector<Constraint> all);
  static Constraint Or(std::vector<Constraint> any);
  static Constraint Not(Constraint constraint);
  static Constraint HasLabel(std::string_view key, std::string_view value);
  static Constraint IsHost(std::string_view name);
  static Constraint IsAnyHost(std::vector<std::string> names);
  // `ranges` ascend, and do not meet. Copies share them.
  static Constraint IsAnyRank(std::vector<IdRange> ranges);

  bool Matches(const ConstraintSubject& node) const;
  bool Matches(const NodeSpec& node) const {
    return Matches(ConstraintSubject{node.name, static_cast<int64_t>(node.ordinal), node.labels});
  }

  // The terms that a node must all meet, for explanations: those of a top-level `and`.
  std::vector<const Constraint*> Terms() const;

  // The same on these nodes, in RFC 31's own operators: a comparison is the `or` of the labels
  // there that meet it. For engines without our extensions.
  Constraint WithoutComparisons(const std::vector<const NodeSpec*>& nodes) const;

  // As RFC 31 writes it; an empty object when it is true for every node.
  nlohmann::json ToJson() const;
  // Equal texts mean the same. What people read, and what caches are keyed by.
  std::string ToString() const;

 private:
  struct ParseState;
  using Children = std::vector<Constraint>;
  using Hosts = std::shared_ptr<const HostSet>;
  using Ranks = std::shared_ptr<const std::vector<IdRange>>;

  static absl::StatusOr<Constraint> ParseObject(const nlohmann::json& value,
                                                const std::string& path,
                                                ParseState state);
  static absl::StatusOr<Constraint> ParseProperty(const std::string& text, const std::string& path);
  static absl::StatusOr<Constraint> ParseComparison(Kind kind,
                                                    const std::string& text,
                                                    const std::string& path);
  static absl::StatusOr<Constraint> ParseHosts(const nlohmann::json& value,
                                               const std::string& path,
                                               ParseState state);
  static absl::StatusOr<Constraint> ParseRanks(const nlohmann::json& value,
                                               const std::string& path);
  static absl::Status ParseTolerations(const nlohmann::json& value,
                                       const std::string& path,
                                       ParseState state);
  static absl::StatusOr<Constraint> ParseNested(Kind kind,
                                                const nlohmann::json& value,
                                                const std::string& path,
                                                ParseState state);
  absl::Status AddOperator(const std::string& name,
                           const nlohmann::json& value,
                           const std::string& path,
                           ParseState state);
  Children& children() { return std::get<Children>(operands_); }
  const Children& children() const { return std::get<Children>(operands_); }
  const std::string* LabelOf(const Labels& properties) const;  // null: there is none
  bool MatchesProperty(const Labels& properties) const;
  bool MatchesNumber(const Labels& properties) const;
  bool MatchesRank(int64_t rank) const;
  std::string RanksText() const;
  std::string Join(std::string_view separator) const;

  // kProperty, kGreater, kLess.
  std::string_view Key() const {
    return std::string_view(text_).substr(key_begin_, key_end_ - key_begin_);
  }
  std::string_view Value() const { return std::string_view(text_).substr(key_end_ + 1); }

  // A job may have tens of thousands of properties, so one is small.
  Kind kind_ = Kind::kAnd;
  // kProperty: whether the label is wanted, whether with a value, and where in the text its key is,
  // behind which "=" and the value stand.
  bool wanted_ = true;
  bool has_value_ = false;
  uint32_t key_begin_ = 0;
  uint32_t key_end_ = 0;
  // kProperty, kGreater, kLess, kHosts, kRanks: as written; empty: ranks that nobody wrote.
  std::string text_;
  // kAnd, kOr, kNot (of the `and` of them): the first. kHosts, kRanks: theirs; ranks are sorted.
  // kGreater, kLess: the number.
  std::variant<Children, Hosts, Ranks, int64_t> operands_;
};

// True for taints by which Kubernetes tells a node's passing condition ("node.kubernetes.io/
// not-ready", "…/unschedulable", "…/memory-pressure"): they keep a job away now, and say nothing
// about whether the node could ever run it.
bool IsCondition(const Taint& taint);

// The first taint that keeps such a job away, or null. Taints of effect
// PreferNoSchedule keep nobody away. `lasting`: conditions do not count.
const Taint* FirstUntolerated(std::span<const Taint> taints,
                              const std::vector<Toleration>& tolerations,
                              bool lasting);

}  // namespace fluxqueue::graph
