#include "libs/metrics/mailbox_metrics.h"

#include <utility>

namespace fluxqueue::metrics {

void ExportMailboxes(Registry& registry,
                     const std::string& service,
                     std::vector<WatchedMailbox> mailboxes) {
  const auto samples = [service, mailboxes = std::move(mailboxes)](auto value_of) {
    return [service, mailboxes, value_of] {
      std::vector<Sample> all;
      for (const WatchedMailbox& mailbox : mailboxes) {
        all.push_back({{{"component", service}, {"mailbox", mailbox.name}},
                       static_cast<double>(value_of(mailbox))});
      }
      return all;
    };
  };
  registry.GaugesFrom("fluxqueue_mailbox_items",
                      "Items that wait between two threads of a service.",
                      {"component", "mailbox"},
                      samples([](const WatchedMailbox& mailbox) { return mailbox.items(); }));
  registry.CountersFrom(
      "fluxqueue_mailbox_full_total",
      "Times that such a mailbox was full, and who filled it waited or was "
      "refused.",
      {"component", "mailbox"},
      samples([](const WatchedMailbox& mailbox) { return mailbox.times_full(); }));
}

}  // namespace fluxqueue::metrics
