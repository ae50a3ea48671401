#include "services/binder/adapters/left_out_teller.h"

#include <fmt/format.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/event.h"
#include "libs/kubernetes/resource.h"

namespace fluxqueue::binder {

void LeftOutTeller::Tell(const delivery::QuarantineRow& row) {
  if (row.object.name.empty()) return;
  if (waiting_.TryPost(row, 1)) return;
  LogWarning("many objects are left out: no Event on this one",
             {{"namespace", row.object.space}, {"name", row.object.name}});
}

absl::Status LeftOutTeller::Run(const std::stop_token& stop) {
  while (const auto row = waiting_.TakeOne(stop)) Write(*row);
  return absl::OkStatus();
}

void LeftOutTeller::Write(const delivery::QuarantineRow& row) {
  const delivery::ObjectRef& object = row.object;
  const auto created = cluster_.Create(
      kubernetes::kEvents,
      object.space,
      kubernetes::EventText(
          {.name = fmt::format("fluxqueue-left-out-{}", object.uid),
           .component = "binder",
           .instance = instance_,
           .type = "Warning",
           .reason = "LeftOut",
           .action = "LeaveOut",
           .note = fmt::format("Fluxqueue cannot handle {} and leaves it out until it changes: {}",
                               object.name,
                               row.reason),
           .regarding = {"v1", object.kind, object.space, object.name, object.uid},
           .at = clock_.Now()}));
  if (created.ok() || absl::IsAlreadyExists(created.status())) return;
  LogWarning(
      "Event not written",
      {{"namespace", object.space}, {"name", object.name}, {"error", Message(created.status())}});
}

}  // namespace fluxqueue::binder
