// What logs, tables and other releases rest on stays: no field or value is removed, renamed (the
// files of `fluxqueue events dump` have their names), retyped or renumbered. fields.txt has all of
// them; a removed one stays there, and its number is reserved.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fluxqueue/delivery/v1/outbox.pb.h"
#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/matcher/v1/matcher.pb.h"
#include "fluxqueue/matcher/v1/state.pb.h"
#include "fluxqueue/queue/v1/queue.pb.h"
#include "fluxqueue/queue/v1/rows.pb.h"
#include "fluxqueue/replay/v1/snapshot.pb.h"

#include "protos/field_summary.h"

namespace fluxqueue {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Reserved = std::set<std::pair<std::string, int>>;

const google::protobuf::FileDescriptor* const kFiles[] = {
    delivery::v1::OutboxBlob::descriptor()->file(),
    events::v1::Envelope::descriptor()->file(),
    matcher::v1::MatchRequest::descriptor()->file(),
    matcher::v1::PoolState::descriptor()->file(),
    queue::v1::GetJobResponse::descriptor()->file(),
    queue::v1::JobRow::descriptor()->file(),
    replay::v1::Snapshot::descriptor()->file()};

FieldSummary Now() {
  FieldSummary summary;
  for (const auto* file : kFiles) Add(*file, &summary);
  return summary;
}

// "MESSAGE NUMBER WHAT"
FieldSummary Committed() {
  std::ifstream file(FIELDS);
  EXPECT_TRUE(file) << FIELDS;
  FieldSummary summary;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream in(line);
    std::pair<std::string, int> key;
    std::string what;
    in >> key.first >> key.second >> std::ws;
    std::getline(in, what);
    summary[key] = what;
  }
  return summary;
}

bool IsReserved(const std::string& name, int number) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  if (const auto* message = pool->FindMessageTypeByName(name); message != nullptr) {
    return message->IsReservedNumber(number);
  }
  const auto* values = pool->FindEnumTypeByName(name);
  return values != nullptr && values->IsReservedNumber(number);
}

TEST(FieldsTest, NothingThatWasSaidIsLost) {
  const FieldSummary committed = Committed();
  Reserved reserved;
  for (const auto& [key, text] : committed) {
    if (IsReserved(key.first, key.second)) reserved.insert(key);
  }
  EXPECT_THAT(Breaks(committed, Now(), reserved), IsEmpty());
}

TEST(FieldsTest, EachFieldIsWrittenDown) {
  const FieldSummary committed = Committed();
  std::string missing;
  for (const auto& [key, text] : Now()) {
    if (!committed.contains(key)) missing += fmt::format("{} {} {}\n", key.first, key.second, text);
  }
  EXPECT_EQ(missing, "") << "add these lines to " << FIELDS;
}

TEST(FieldsTest, ABreakIsNamed) {
  const FieldSummary before = {{{"m", 1}, "string a"}, {{"m", 2}, "int64 b"}, {{"m", 3}, "bool c"}};
  EXPECT_THAT(Breaks(before, before, {}), IsEmpty());
  const FieldSummary retyped = {{{"m", 1}, "bytes a"}, {{"m", 2}, "int64 b"}, {{"m", 3}, "bool c"}};
  EXPECT_THAT(Breaks(before, retyped, {}),
              ElementsAre(HasSubstr("m 1: was \"string a\", and is \"bytes a\"")));
  const FieldSummary renumbered = {
      {{"m", 1}, "string a"}, {{"m", 2}, "int64 b"}, {{"m", 4}, "bool c"}};
  EXPECT_THAT(Breaks(before, renumbered, {}), ElementsAre(HasSubstr("m 3: \"bool c\" is gone")));
  EXPECT_THAT(Breaks(before, renumbered, {{"m", 3}}), IsEmpty());
}

}  // namespace
}  // namespace fluxqueue
