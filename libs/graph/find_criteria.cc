#include "libs/graph/find_criteria.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/graph/shortened.h"

namespace fluxqueue::graph {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxNames = 65'536;  // of all terms together
constexpr int kMaxDepth = 64;
constexpr std::string_view kKnown =
    "status, sched-now, sched-future, jobid-alloc, jobid-reserved, jobid-tag, jobid-span, names, "
    "property";

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool IsSpace(char c) {
  return c == ' ' || c == '\t';
}

}  // namespace

class FindCriteria::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Term>> Parse() {
    ASSIGN_OR_RETURN(std::vector<Term> terms, ParseGroup(0));
    if (at_ < text_.size()) return InvalidArgument("criteria: \")\" without a \"(\" before it");
    return terms;
  }

 private:
  absl::StatusOr<std::vector<Term>> ParseGroup(int depth) {
    if (depth > kMaxDepth) {
      return InvalidArgument("criteria: parentheses are nested deeper than {} levels", kMaxDepth);
    }
    std::vector<Term> terms;
    while (true) {
      const bool or_before = !terms.empty() && ReadJoin();
      SkipSpace();
      if (at_ == text_.size() || text_[at_] == ')') {
        if (terms.empty() || joined_) return InvalidArgument("criteria: a term is missing");
        return terms;
      }
      ASSIGN_OR_RETURN(Term term, ParseTerm(depth));
      joined_ = false;
      term.or_before = or_before;
      terms.push_back(std::move(term));
    }
  }

  // Whether what follows is joined by `or`; leaves the cursor before the term.
  bool ReadJoin() {
    SkipSpace();
    for (const std::string_view word : {"and", "or"}) {
      const std::string_view rest = text_.substr(at_);
      if (!rest.starts_with(word) || rest.size() == word.size()) continue;
      const char after = rest[word.size()];
      if (!IsSpace(after) && after != '(') continue;
      at_ += word.size();
      joined_ = true;
      return word == "or";
    }
    return false;
  }

  absl::StatusOr<Term> ParseTerm(int depth) {
    if (text_[at_] != '(') return ParseLeaf();
    ++at_;
    Term term;
    ASSIGN_OR_RETURN(term.group, ParseGroup(depth + 1));
    if (at_ == text_.size()) return InvalidArgument("criteria: \"(\" without a \")\" after it");
    ++at_;
    return term;
  }

  absl::StatusOr<Term> ParseLeaf() {
    const size_t begin = at_;
    while (at_ < text_.size() && !IsSpace(text_[at_]) && text_[at_] != '(' && text_[at_] != ')') {
      ++at_;
    }
    const std::string_view leaf = text_.substr(begin, at_ - begin);
    const size_t equals = leaf.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument("criteria: \"{}\" must be key=value; known keys are {}", leaf, kKnown);
    }
    return MakeTerm(leaf.substr(0, equals), leaf.substr(equals + 1));
  }

  absl::StatusOr<Term> MakeTerm(std::string_view key, std::string_view value) {
    struct Choice {
      std::string_view key;
      Key kind;
      std::string_view yes;
      std::string_view no;
    };
    constexpr std::array<Choice, 3> kChoices = {
        {{"status", Key::kStatus, "down", "up"},
         {"sched-now", Key::kNow, "allocated", "free"},
         {"sched-future", Key::kFuture, "reserved", "free"}}};
    Term term;
    for (const Choice& choice : kChoices) {
      if (choice.key != key) continue;
      const std::string lower = Lower(value);
      if (lower != choice.yes && lower != choice.no) {
        return InvalidArgument(
            "criteria: {} must be {} or {}, is \"{}\"", key, choice.yes, choice.no, value);
      }
      term.key = choice.kind;
      term.wanted = lower == choice.yes;
      return term;
    }
    return MakeOpenTerm(key, value);
  }

  absl::StatusOr<Term> MakeOpenTerm(std::string_view key, std::string_view value) {
    constexpr std::array<std::pair<std::string_view, Key>, 4> kJobs = {
        {{"jobid-alloc", Key::kHeldBy},
         {"jobid-reserved", Key::kReservedBy},
         {"jobid-tag", Key::kPassedBy},
         {"jobid-span", Key::kSummedUpFor}}};
    Term term;
    for (const auto& [name, kind] : kJobs) {
      if (name != key) continue;
      const char* end = value.data() + value.size();
      const auto result = std::from_chars(value.data(), end, term.job);
      if (result.ec != std::errc() || result.ptr != end) {
        return InvalidArgument("criteria: {} must be a job's number, is \"{}\"", key, value);
      }
      term.key = kind;
      return term;
    }
    if (key == "names") {
      term.key = Key::kNames;
      RETURN_IF_ERROR(Annotate(term.names.Add(Lower(value), names_left_),
                               fmt::format("criteria: names=\"{}\"", value)));
      names_left_ -= term.names.size();
      term.names.Finish();
      return term;
    }
    if (key == "property" && !value.empty()) {
      term.key = Key::kProperty;
      term.property = Lower(value);
      return term;
    }
    return InvalidArgument("criteria: \"{}\" is unknown or empty; known are {}", key, kKnown);
  }

  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t names_left_ = kMaxNames;
  bool joined_ = false;  // by a word after which a term must stand
};

absl::StatusOr<FindCriteria> FindCriteria::Parse(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return InvalidArgument(
        "criteria: have {} bytes, at most {} are allowed", text.size(), kMaxBytes);
  }
  FindCriteria criteria;
  absl::StatusOr<std::vector<Term>> terms = Parser(text).Parse();
  if (!terms.ok()) return Shortened(terms.status());
  criteria.terms_ = *std::move(terms);
  return criteria;
}

bool FindCriteria::Matches(const FindSubject& subject) const {
  return Evaluate(terms_, subject);
}

bool FindCriteria::Evaluate(const std::vector<Term>& terms, const FindSubject& subject) {
  bool result = Holds(terms.front(), subject);
  for (size_t i = 1; i < terms.size(); ++i) {
    const bool holds = Holds(terms[i], subject);
    result = terms[i].or_before ? result || holds : result && holds;
  }
  return result;
}

bool FindCriteria::Holds(const Term& term, const FindSubject& subject) {
  switch (term.key) {
    case Key::kStatus:
      return subject.down == term.wanted;
    case Key::kNow:
      return subject.allocated == term.wanted;
    case Key::kFuture:
      return subject.reserved == term.wanted;
    case Key::kHeldBy:
      return subject.allocations.contains(term.job);
    case Key::kReservedBy:
      return subject.reservations.contains(term.job);
    case Key::kPassedBy:
      return subject.passing.contains(term.job);
    case Key::kSummedUpFor:
      return subject.sums_up && subject.passing.contains(term.job);
    case Key::kNames:
      return term.names.Contains(subject.name);
    case Key::kProperty:
      return std::any_of(subject.properties.begin(),
                         subject.properties.end(),
                         [&term](const auto& property) { return property.first == term.property; });
    case Key::kGroup:
      return Evaluate(term.group, subject);
  }
  return false;
}

}  // namespace fluxqueue::graph
