// Kubernetes quantities ("1500m", "3Gi", "1e3") in the base units of their resource: cpu in
// millicores, all else in whole units (bytes for memory, storage and huge pages). A fraction of a
// base unit is rounded up, as kube-scheduler does. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

// Resource name → amount in its base unit. Ordered, so that equal amounts have equal texts.
using Amounts = std::map<std::string, int64_t, std::less<>>;

// Of one resource: the most that a slot may ask for, and that is counted of a node. Sums and
// differences of a few of them are numbers still.
inline constexpr int64_t kMostAmount = int64_t{1} << 60;

// What is above 2^63-1 base units is 2^63-1, as in Kubernetes: the API server takes it, so a pod
// that asks for it may run. InvalidArgument names the text: not a quantity, or negative.
absl::StatusOr<int64_t> ParseQuantity(std::string_view resource, std::string_view text);

// The other way, for people: "1500m", "3Gi", "4". ParseQuantity of it gives the same amount.
std::string FormatQuantity(std::string_view resource, int64_t amount);

// "cpu 1500m, memory 3Gi, pods 1"
std::string FormatAmounts(const Amounts& amounts);

// Sums stop at 2^63-1.
void Add(Amounts& to, const Amounts& more);
// The larger of both, resource by resource.
void RaiseTo(Amounts& to, const Amounts& least);
// Missing resources are taken from `from`, present ones stay.
void FillMissing(Amounts& to, const Amounts& from);

}  // namespace fluxqueue::kubernetes
