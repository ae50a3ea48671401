#include "services/graph/domain/resource_set_size.h"

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/hostlist.h"
#include "libs/graph/idset.h"
#include "libs/graph/json_check.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::graph_service {
namespace {

using nlohmann::json;

// Of an R as text: as a tree it takes some thirty times as much.
constexpr size_t kMostBytes = size_t{8} << 20;
constexpr int kMaxDepth = 16;
// Of the names of its nodes.
constexpr size_t kMostHostBytes = size_t{64} << 20;

absl::Status TooLarge(std::string_view what, int64_t limit) {
  return rpc::WithReason(rpc::InField(MakeStatus(absl::StatusCode::kResourceExhausted,
                                                 "graph: the R {} than {} that are allowed",
                                                 what,
                                                 limit),
                                      "graph"),
                         "GRAPH_SIZE",
                         {{"limit", fmt::format("{}", limit)}});
}

const json& Member(const json& object, const char* key) {
  static const json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

// How many numbers an idset has, or more than `most`; 0 for what is none.
int64_t CountIds(const json& text, int64_t most) {
  std::vector<graph::IdRange> ranges;
  if (!text.is_string()) return 0;
  if (!graph::ParseIdset(text.get_ref<const std::string&>(), kMostBytes, &ranges).ok()) return 0;
  int64_t count = 0;
  for (const auto& [first, last] : ranges) {
    if (last - first >= most) return most + 1;
    count = std::min(count + last - first + 1, most + 1);
  }
  return count;
}

// All that the entries name; the numbers are those of one entry at most, so that nothing overflows.
int64_t CountResources(const json& entries, int64_t most) {
  int64_t count = 0;
  for (const json& entry : entries) {
    int64_t each = 1;
    for (const json& ids : Member(entry, "children")) {
      each = std::min(each + CountIds(ids, most), most + 1);
    }
    const int64_t ranks = CountIds(Member(entry, "rank"), most);
    if (ranks > 0 && each > most / ranks) return most + 1;
    count += each * ranks;
    if (count > most) return count;
  }
  return count;
}

int64_t CountProperties(const json& properties, int64_t most) {
  int64_t count = 0;
  for (const json& ranks : properties) {
    count += CountIds(ranks, most);
    if (count > most) return count;
  }
  return count;
}

// A list that is longer than the ranks is refused: it ends here, before it is as long as it can be.
absl::Status CheckHosts(const json& lists, int64_t most) {
  graph::HostlistSize size;
  for (const json& list : lists) {
    if (!list.is_string()) continue;
    RETURN_IF_ERROR(
        Annotate(graph::MeasureHostlist(
                     list.get_ref<const std::string&>(), static_cast<size_t>(most), &size),
                 "execution.nodelist"));
    if (size.bytes > kMostHostBytes) {
      return TooLarge("names nodes of more bytes", kMostHostBytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckResourceSetSize(std::string_view text, int64_t most) {
  if (text.size() > kMostBytes) return TooLarge("has more bytes", kMostBytes);
  if (!graph::CheckJson(text, {.depth = kMaxDepth}).ok()) return absl::OkStatus();
  const json tree = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const json& execution = Member(tree, "execution");
  if (CountResources(Member(execution, "R_lite"), most) > most) {
    return TooLarge("names more resources", most);
  }
  if (CountProperties(Member(execution, "properties"), most) > most) {
    return TooLarge("gives more properties", most);
  }
  return rpc::InField(CheckHosts(Member(execution, "nodelist"), most), "graph");
}

}  // namespace fluxqueue::graph_service
