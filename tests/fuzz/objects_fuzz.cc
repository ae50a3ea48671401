#include <string>

#include "libs/base/check.h"
#include "libs/kubernetes/list_reader.h"
#include "libs/kubernetes/views.h"
#include "services/admission/adapters/sketch_reader.h"
#include "tests/fuzz/targets.h"

namespace fluxqueue::fuzz {
namespace {

using kubernetes::internal::ListReader;

// As the watches of all services read an object, once its identity is known.
void ReadAsAll(std::string_view object) {
  const auto meta = kubernetes::ParseMeta(object);
  const auto job = kubernetes::ParseJob(object);
  CHECK(!job.ok() || meta.ok(), "{}", object);
  const auto pod = kubernetes::ParsePod(object);
  CHECK(!pod.ok() || meta.ok(), "{}", object);
  (void)kubernetes::ParseNode(object);
  (void)kubernetes::ParseNamespace(object);
  (void)kubernetes::ParseLimitRange(object);
  (void)kubernetes::ParseRuntimeClass(object);
  (void)kubernetes::ParsePriorityClass(object);
  (void)kubernetes::ParseFluxQueue(object);
  (void)kubernetes::ParseFluxWindow(object);
  for (const auto kind : {admission::WorkloadKind::kJob, admission::WorkloadKind::kPod}) {
    const auto sketch = admission::ReadSketch(kind, object);
    CHECK(!sketch.ok() || sketch->digest != 0, "{}", object);
  }
}

}  // namespace

void FuzzObjects(std::string_view text) {
  ListReader reader;
  ListReader items;
  const auto read = [&items](std::string_view object) {
    std::string padded(object);
    const auto identity = items.ReadIdentity(kubernetes::internal::Padded(padded));
    if (identity.ok()) ReadAsAll(object);
    return absl::OkStatus();
  };
  std::string page(text);
  (void)reader.ReadPage(page, read);
  std::string line(text);
  const auto change = reader.ReadLine(kubernetes::internal::Padded(line));
  if (change.ok()) (void)read(change->object);
  (void)read(text);
}

}  // namespace fluxqueue::fuzz
