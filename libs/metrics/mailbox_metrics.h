// What waits in the mailboxes of a service (base/mailbox.h), and how often one was full:
//
//   metrics::ExportMailboxes(registry, "binder", {metrics::Watch("cluster", inbox_), …});
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "libs/metrics/metrics.h"

namespace fluxqueue::metrics {

struct WatchedMailbox {
  std::string name;
  std::function<size_t()> items;
  std::function<uint64_t()> times_full;
};

// Whatever has size() and times_full(), both thread-safe. It must outlive the registry's last
// Text().
template <typename Box>
WatchedMailbox Watch(std::string name, const Box& box) {
  return {std::move(name), [&box] { return box.size(); }, [&box] { return box.times_full(); }};
}

// fluxqueue_mailbox_items and fluxqueue_mailbox_full_total. Once for each registry.
void ExportMailboxes(Registry& registry,
                     const std::string& service,
                     std::vector<WatchedMailbox> mailboxes);

}  // namespace fluxqueue::metrics
