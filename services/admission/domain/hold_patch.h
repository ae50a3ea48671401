// The JSON Patch that holds an object. Pure, thread-safe.
//
// Only what differs is in it: the patch of an object that is held already is empty.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/views.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::admission {

struct Making {
  std::string user;                      // empty: not known
  std::optional<tracing::Context> span;  // the webhook's; unset: not traced
  std::string admitted_to;               // the queue that says who may submit; empty: it does not
  std::vector<std::string> forged{};     // what TakeForged() has found
  std::string group{};                   // of a pod: the record of its group; empty: none
  std::string queue{};                   // its namespace's, as it names none; empty: it does
  std::string places{};                  // of a pod: the record of its places; empty: none
  std::string place_of{};                // of a pod: whose place it takes; empty: it takes none
};

// What a Job is given beside what holds its template.
struct JobChanges {
  bool suspend = false;             // with our annotation
  bool ignore_disruptions = false;  // the first rule of its podFailurePolicy, which has none such
};

struct Patch {
  std::string text;  // RFC 6902; empty: nothing to change
  // The keys of annotations that it takes away, in order: our records, written by somebody else.
  std::vector<std::string> stripped;
};

// Takes our records out of the annotations of what is about to be made, so that nothing believes
// them, and names them. Those that the webhook writes stay, and are judged by the patch: asked
// again in the same request, it finds its own.
std::vector<std::string> TakeForged(kubernetes::StringMap* annotations);

Patch HoldPatch(const kubernetes::Pod& pod, kubernetes::Mode mode, const Making& making);
// `suspend`: the Job is to be held by its `spec.suspend` too.
Patch HoldPatch(const kubernetes::Job& job,
                kubernetes::Mode mode,
                const Making& making,
                const JobChanges& changes);

// Of what pods or Jobs are made.
struct Template {
  const kubernetes::ObjectMeta& root;  // of the object that has it
  const std::string& path;             // JSON Pointer
  const kubernetes::ObjectMeta& meta;  // its own
  // A Job's: the annotations of the pod template in it. Null: it is a pod's.
  const kubernetes::StringMap* pods = nullptr;
};
// What comes of it says for whom.
Patch StampPatch(const Template& of, const Making& making);

}  // namespace fluxqueue::admission
