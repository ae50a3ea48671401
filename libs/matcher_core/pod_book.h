// Rules between pods (libs/graph/pod_rules.h) as nodes that are closed to a candidate.
//
// A domain of a rule is the nodes that have one value of its label. What counts are the slots that
// jobs of the candidate's namespace hold:
//
//   apart   closed: the domains of pods that the rule selects, until these are given back; and of
//           those that have such a rule which selects the candidate's pods. What was promised to
//           those ahead of it counts, too, for its time
//   beside  open: the domains of pods that all these rules select. Where there are none, and they
//           select the candidate's own pods, it is the first: every domain is open
//   spread  closed: the domains that have `skew` more of the pods than the one that has the
//           fewest, once there was one more
//
// A node without the label is closed by `beside` and `spread`. These two say what is so now, and
// not when it ends: by them nothing can be promised.
//
// A job's own pods count, too. So where a job has rules that they must keep among themselves, they
// are placed one after the other (IsPlacedOneByOne); that no two are on one node, its jobspec says.
//
// What pods prefer comes to what each node is worth to a candidate: from 0 to 100 by the weights of
// the pods that it would be near to, as kube-scheduler scales its scores, and from 0 to 100 by each
// spread, the most where there are the fewest. What those pods prefer that are there does not
// count.
//
// Pods on the nodes that hold nothing of ours count as those that hold something for ever.
//
// To place a pod with rules is a look at all pods of its namespace, but one of its kind is as
// another while nothing changes. Of one queue and namespace kMostKinds kinds are looked at in a
// cycle; to others all nodes are closed until those have started, or they prefer none.
//
// Belongs to one cycle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/graph/closure.h"
#include "libs/graph/idset.h"
#include "libs/graph/jobspec.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

// Of pods that differ in their rules, or in labels that some rule asks for.
inline constexpr size_t kMostKinds = 64;
// Slots of a job that prefers among its own: of more each takes a look at all nodes.
inline constexpr uint32_t kMostPreferring = 64;

// Its pods have rules that they must keep among themselves, beyond nodes of their own.
bool IsPlacedOneByOne(const graph::Jobspec& jobspec);
// Where one of its pods is matters to another: they are worth placing one after the other.
bool PrefersAmongOwn(const graph::Jobspec& jobspec);

class PodBook {
 public:
  // `now_s`: the cycle's. The view outlives it.
  PodBook(const View& view, int64_t now_s);

  struct Closures {
    std::vector<graph::Closure> all;
    std::string text;        // equal for equal ones
    uint32_t nodes_now = 0;  // how many nodes are closed now
  };
  // `behind`: whose promises do not count. `queue`: whose candidate it is. Null: no node is closed.
  std::shared_ptr<const Closures> ClosuresFor(const AllocationKey& key,
                                              const graph::Jobspec& jobspec,
                                              const std::vector<AllocationKey>& behind,
                                              uint32_t queue);
  // Null: by where pods are all nodes are worth the same.
  std::shared_ptr<const graph::NodeWorths> WorthsFor(const graph::Jobspec& jobspec, uint32_t queue);
  // What such pods are asked about is looked at now.
  void Prepare(const graph::Jobspec& jobspec);
  // The nodes of the domain of that one, by the first rule by which such pods are to be beside
  // each other; none: there is no such rule, or no such node.
  std::vector<std::string> DomainBeside(const graph::PodRules& own, const std::string& node);
  // The job holds other slots than before.
  void Changed(const std::string& job_id);

 private:
  struct Held {
    size_t node = 0;
    int64_t until_s = 0;
  };
  // Pods of one namespace that are alike to all rules there, and hold something.
  struct Kind {
    const graph::PodRules* pods = nullptr;
    std::map<SpecKey, std::vector<Held>> jobs;
  };
  // A candidate without rules of its own is one of others' rules alone: it is asked of `ruled`.
  struct Space {
    bool is_whole = false;  // else it has those that have rules
    uint64_t changes = 0;
    bool has_rules = false;             // some pods there have
    std::set<std::string> keys;         // of labels that some rule asks for
    std::set<std::string> more_keys;    // the same, and those that what is preferred asks for
    std::map<std::string, Kind> kinds;  // by NameOf, with more_keys
    std::vector<const Kind*> ruled;
    std::map<SpecKey, Kind*> of_job;
  };
  struct Known {
    std::array<uint64_t, 3> at = {UINT64_MAX, 0, 0};  // what had changed by then
    std::shared_ptr<const Closures> closures;
  };
  struct KnownWorths {
    uint64_t at = UINT64_MAX;
    std::shared_ptr<const graph::NodeWorths> worths;
  };
  using Domain = std::vector<size_t>;  // its nodes
  struct Domains {
    std::map<std::string, Domain> by_value;
    std::vector<const Domain*> of_node;  // null: it has not the label
  };
  struct Share {
    std::vector<size_t> nodes;        // some more than once
    std::set<const Domain*> domains;  // all of whose nodes are there
  };
  // What is closed, by when that begins and ends.
  using Closed = std::map<std::pair<int64_t, int64_t>, Share>;

  std::shared_ptr<const Closures> MakeClosures(const AllocationKey& key,
                                               const graph::Jobspec& jobspec,
                                               const std::vector<AllocationKey>& behind,
                                               const Space& space);
  // Whether those of another kind have to wait for the next cycle.
  bool IsOneTooMany(const std::string& kind, uint32_t queue, const std::string& space);
  // Null: none there has a rule.
  Space* SpaceOf(const std::string& name, bool whole);
  void NoteKeys(const graph::Jobspec& jobspec, Space* space) const;
  static void NoteRules(const graph::PodRules& pods, Space* space);
  // Equal for pods that are alike to what asks for these keys.
  static std::string NameOf(const graph::PodRules& pods, const std::set<std::string>& keys);
  static Kind* KindOf(const graph::PodRules& pods, Space* space);
  void Add(const SpecKey& key, const graph::PodRules& pods, Space* space);
  void AddRuled(const std::string& name, Space* space);
  void AddForeign(const std::string& name, Space* space);
  const Domains& DomainsOf(const std::string& key);
  // The node's domain.
  void Close(const std::string& key, size_t node, std::pair<int64_t, int64_t> time, Closed* closed);

  void KeepApart(const graph::PodRules& own, const Kind& kind, Closed* closed);
  void KeepApartFromPromised(const AllocationKey& key,
                             const graph::PodRules& own,
                             const std::vector<AllocationKey>& behind,
                             Closed* closed);
  void KeepBeside(const graph::PodRules& own, const Space& space, Closed* closed);
  void Spread(const graph::Jobspec& jobspec, const Space& space, Closed* closed);
  // Of a jobspec with these rules, for each of them by what it heeds: which nodes count.
  using Counting = std::map<std::pair<bool, bool>, std::vector<bool>>;
  Counting CountingOf(const graph::Jobspec& jobspec, const std::vector<graph::SpreadRule>& all);
  // Of the domains that count for the rule: how many of its pods they have.
  std::map<const Domain*, int64_t> CountByDomain(const Counting& counting,
                                                 const graph::SpreadRule& rule,
                                                 const Space& space);
  // Each adds to what the nodes are worth.
  void Near(const std::vector<graph::PodPreference>& near,
            const Space& space,
            std::vector<int64_t>* worths);
  void Even(const graph::Jobspec& jobspec, const Space& space, std::vector<int64_t>* worths);
  // Those of the namespace whose pods have no rules.
  const std::vector<SpecKey>& Unruled(const std::string& name);
  std::shared_ptr<const Closures> ToClosures(const Closed& closed) const;

  const View& view_;
  const int64_t now_s_;
  // Looked up when they are first asked for.
  std::map<std::string, std::unique_ptr<Space>> spaces_;
  std::vector<graph::NodeSpec> nodes_;
  std::map<std::string_view, size_t> by_name_;
  std::map<std::string, Domains> domains_;  // by label
  std::map<std::string, Known> known_;      // by who asks, and for what
  std::map<std::string, KnownWorths> known_worths_;
  // Of namespaces where it matters to some pods where others run.
  std::optional<std::map<std::string, std::vector<SpecKey>>> unruled_;
  // By queue and namespace: kinds with rules.
  std::map<std::pair<uint32_t, std::string>, std::set<std::string>> looked_at_;
};

}  // namespace fluxqueue::matcher_core
