// The JSON Patch that holds an object. Pure, thread-safe.
//
// Only what differs is in it: the patch of an object that is held already is empty.
#pragma once

#include <optional>
#include <string>

#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/views.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::admission {

struct Making {
  std::string user;                      // empty: not known
  std::optional<tracing::Context> span;  // the webhook's; unset: not traced
  std::string admitted_to;               // the queue that says who may submit; empty: it does not
};

// What a Job is given beside what holds its template.
struct JobChanges {
  bool suspend = false;             // with our annotation
  bool ignore_disruptions = false;  // the first rule of its podFailurePolicy, which has none such
};

// RFC 6902 as text; empty: nothing to change.
std::string HoldPatch(const kubernetes::Pod& pod, kubernetes::Mode mode, const Making& making);
// `suspend`: the Job is to be held by its `spec.suspend` too.
std::string HoldPatch(const kubernetes::Job& job,
                      kubernetes::Mode mode,
                      const Making& making,
                      const JobChanges& changes);
// Of an object with a template at `path` (JSON Pointer), whose metadata are `meta`: what comes of
// it says for whom.
std::string StampPatch(const std::string& path,
                       const kubernetes::ObjectMeta& meta,
                       const Making& making);

}  // namespace fluxqueue::admission
