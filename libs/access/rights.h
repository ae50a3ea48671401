// What is asked before a call is done: a right in the API group visibility.fluxqueue.io, which
// RBAC gives and a SubjectAccessReview tells of, or the verb of a FluxQueue's subjects.
//
// A job has the name of its FluxJob there ("job-hello"), a claim its id.
//
//   look at a job            get jobs                      view
//   list, watch jobs         list, watch jobs              view, of the queue that is asked for
//   cancel                   create jobs/cancel            cancel
//   hold, release            create jobs/hold              hold
//   priority                 create jobs/priority          prioritise
//   move                     create jobs/move              move; and the other queue takes it
//   make a claim             create claims                 claim; and the queue takes it
//   list queues, get one     list, get queues
//   abandon a cycle          create pools/cycle
//   look at a pool's graph   get pools/graph
//   make a private graph     create graphs
//
// Rights to jobs are asked in the namespace of the job. A claim is of no namespace: the same is
// asked for `claims`, and its maker may look at it and cancel it. What an authorizer of the API
// server denies (not only does not give), as what is beyond the scopes of a token, neither a
// FluxQueue's subjects nor its maker's own give.
//
// Pure, thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fluxqueue::access {

inline constexpr char kGroup[] = "visibility.fluxqueue.io";
// That a token must be made for.
inline constexpr char kAudience[] = "fluxqueue";

// As Kubernetes knows him.
struct User {
  std::string name{};
  std::vector<std::string> groups{};
  std::string uid{};
  // What else who authenticated him says, such as scopes: it may take rights away.
  std::map<std::string, std::vector<std::string>> extra{};

  bool operator==(const User&) const = default;
};

// Of kGroup.
struct Right {
  std::string verb;
  std::string resource;
  std::string subresource{};
  std::string space{};  // empty: the whole cluster
  std::string name{};   // empty: all

  bool operator==(const Right&) const = default;
};

// To one job.
enum class Act { kView, kCancel, kHold, kPrioritise, kMove };

// What is asked of a job.
struct Job {
  bool claim = false;
  std::string space{};
  std::string name{};  // in the API
  std::string user{};  // who is charged for it
  std::string pool{};
  std::string queue{};
};

Right RightTo(Act act, const Job& job);
// `verb`: list, watch. `space` empty: all.
Right RightToJobs(std::string_view verb, std::string_view space);
Right RightToClaims(std::string_view verb);
Right RightToClaim(std::string_view queue);
// `name` empty: all.
Right RightToQueues(std::string_view name);
Right RightToAbandon(std::string_view pool);
Right RightToLookAt(std::string_view pool);
Right RightToGraphs();

// Of a FluxQueue's subjects.
std::string_view SubjectVerb(Act act);

// It is his own, and that is enough.
bool IsHisOwn(Act act, const Job& job, const User& user);

// Whose bounds a user's calls count against: a service account's are those of its namespace, as who
// may make accounts there has any number of them.
std::string_view TenantOf(std::string_view user);

// "get jobs/x"; what the user may not, and what would let him. `verb` and `queue`: of subjects that
// would do, too; empty: none.
std::string Refusal(const User& user,
                    const Right& right,
                    std::string_view verb,
                    std::string_view queue);

}  // namespace fluxqueue::access
