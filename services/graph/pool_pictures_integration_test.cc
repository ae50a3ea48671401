// What the graph service sees of a pool, in a real Postgres that the matcher's store has written:
// by the role that it has in an installation.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/access/fake_authority.h"
#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/job_store/fact_store.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/test_messages.h"
#include "libs/peers/peers.h"
#include "libs/postgres/migrations.h"
#include "libs/testing/mini_postgres.h"
#include "services/graph/adapters/allocation_feed.h"
#include "services/graph/adapters/claims.h"
#include "services/graph/adapters/cluster_calls.h"
#include "services/graph/adapters/pool_pictures.h"
#include "services/matcher/adapters/matcher_store.h"

#include "matcher_migrations.h"

namespace fluxqueue::graph_service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Event = v1::WatchAllocationsResponse;

constexpr char kPool[] = "main";

PoolPictures::Pick Job(const std::string& id) {
  return [id](pqxx::transaction_base&) { return std::vector{id}; };
}

// The matcher's side: each message is a batch.
class Matcher {
 public:
  explicit Matcher(const std::string& dsn)
      : db_({.dsn = dsn, .application = "test", .schema = "matcher"}) {
    CHECK(postgres::Migrate(db_, "matcher", {&delivery::Migrations(), &migrations::matcher()}).ok(),
          "matcher");
  }

  void Commit(const matcher_core::Envelope& message) {
    std::vector<matcher_core::Envelope> said;
    CHECK(core_.Handle(message, Millis(5000), &said).ok(), "{}", message.ShortDebugString());
    const absl::Status status = db_.Transact([&](pqxx::transaction_base& tx) {
      matcher::WriteChanges(tx, kPool, 0, core_.TakeChanges(), true);
      tx.exec(
          "INSERT INTO inbox (partition, holder, epoch) VALUES (0, 'test', 1) "
          "ON CONFLICT (partition) DO UPDATE SET commits = inbox.commits + 1");
      return absl::OkStatus();
    });
    CHECK(status.ok(), "{}", Message(status));
    core_.Commit();
  }
  void Reconnect() { db_.Close(); }
  void Hold(const std::string& job, uint32_t slots = 1) {
    Commit(matcher_core::Submitted(job, slots, matcher_core::JobspecText(slots, 1000)));
    Commit(matcher_core::Cycle(++cycle_, {job}));
  }

 private:
  postgres::Connection db_;
  matcher_core::MatcherCore core_{kPool};
  uint64_t cycle_ = 0;
};

class PoolPicturesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    postgres_.MakeRoles();
    matcher_ = std::make_unique<Matcher>(postgres_.dsn_of("matcher"));
    pictures_ = std::make_unique<PoolPictures>(postgres_.dsn_of("graph"), 4, clock_);
  }

  void MakePool() {
    for (const char* node : {"n1", "n2"}) {
      matcher_->Commit(matcher_core::Upserted(matcher_core::MakeNode(node, 4000)));
    }
    matcher_->Commit(matcher_core::Synced());
  }

  PoolPictures::View Look() {
    auto view = pictures_->Look(kPool, std::chrono::steady_clock::now());
    CHECK(view.ok(), "{}", Message(view.status()));
    return *std::move(view);
  }
  PoolPictures::Held Find(const PoolPictures::Pick& pick) {
    auto held = pictures_->Find(kPool, pick);
    CHECK(held.ok(), "{}", Message(held.status()));
    return *std::move(held);
  }
  static int64_t CpuHeld(const PoolView& view) {
    v1::GetGraphResponse response;
    view.Summarise(&response);
    for (const auto& level : response.levels()) {
      if (level.type() == "cpu") return level.held();
    }
    return -1;
  }

  // Waits for the next one.
  static Event Next(AllocationWatch& watch) {
    Event event;
    absl::Status end;
    while (true) {
      std::promise<void> woken;
      const auto taken = watch.Take(&event, &end, [&woken] { woken.set_value(); });
      if (taken == AllocationWatch::Taken::kEvent) return event;
      CHECK(taken == AllocationWatch::Taken::kNothing, "{}", Message(end));
      CHECK(woken.get_future().wait_for(30s) == std::future_status::ready, "nothing comes");
    }
  }

  testing::MiniPostgres postgres_;
  FakeClock clock_{std::chrono::system_clock::time_point(10s)};
  std::unique_ptr<Matcher> matcher_;
  std::unique_ptr<PoolPictures> pictures_;
};

TEST_F(PoolPicturesTest, ALookIsOfTheLastCommit) {
  EXPECT_TRUE(absl::IsNotFound(pictures_->Look(kPool, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(pictures_->Find(kPool, Job("a")).status()));
  MakePool();
  EXPECT_EQ(CpuHeld(*Look()), 0);
  matcher_->Hold("a", 2);
  const PoolPictures::View held = Look();
  EXPECT_EQ(CpuHeld(*held), 2000);
  // It serves until there is another.
  EXPECT_EQ(Look(), held);
  matcher_->Commit(matcher_core::Release("a", {0}));
  EXPECT_EQ(CpuHeld(*Look()), 1000);
  matcher_->Commit(matcher_core::Release("a"));
  EXPECT_EQ(CpuHeld(*Look()), 0);
}

TEST_F(PoolPicturesTest, WhoAskedBeforeItWasMadeSharesIt) {
  MakePool();
  const auto asked = std::chrono::steady_clock::now();
  const PoolPictures::View view = Look();
  matcher_->Hold("a");
  EXPECT_EQ(*pictures_->Look(kPool, asked), view);
  EXPECT_EQ(CpuHeld(*Look()), 1000);
}

TEST_F(PoolPicturesTest, TimeGoesOnInAPoolWhereNothingHappens) {
  MakePool();
  const PoolPictures::View view = Look();
  clock_.Advance(1s);
  EXPECT_NE(Look(), view);
}

TEST_F(PoolPicturesTest, NodesAreReadAgainWhenTheyHaveChanged) {
  MakePool();
  matcher_->Hold("a");
  const PoolPictures::Held first = Find(Job("a"));
  EXPECT_THAT(first.jobs, ElementsAre(Pair("a", SizeIs(1))));
  matcher_->Hold("b");
  EXPECT_EQ(Find(Job("a")).nodes, first.nodes);
  EXPECT_THAT(Find(Job("nobody")).jobs, ElementsAre(Pair("nobody", IsEmpty())));
  matcher_->Commit(matcher_core::Upserted(matcher_core::MakeNode("n3", 4000)));
  const PoolPictures::Held more = Find(Job("a"));
  EXPECT_NE(more.nodes, first.nodes);
  matcher_->Commit(matcher_core::Configured("first", {"rack=example.com/rack"}));
  EXPECT_NE(Find(Job("a")).nodes, more.nodes);
}

TEST_F(PoolPicturesTest, AWatchIsToldWhatIsHeldAndWhatBecomesOfIt) {
  MakePool();
  matcher_->Hold("a", 2);
  AllocationFeed feed(*pictures_);
  const auto watch = std::make_shared<AllocationWatch>(v1::WatchAllocationsRequest(), 10'000);
  feed.Watch(kPool, watch);
  Event event = Next(*watch);
  EXPECT_EQ(event.kind(), Event::KIND_HELD);
  EXPECT_EQ(event.job_id(), "a");
  EXPECT_EQ(Next(*watch).kind(), Event::KIND_SYNCED);
  matcher_->Hold("b");
  event = Next(*watch);
  EXPECT_EQ(event.kind(), Event::KIND_ALLOCATED);
  EXPECT_EQ(event.job_id(), "b");
  matcher_->Commit(matcher_core::Release("a", {0}));
  event = Next(*watch);
  EXPECT_EQ(event.kind(), Event::KIND_REDUCED);
  EXPECT_EQ(event.job_id(), "a");
  // What happens while Postgres is away is told when it is back.
  postgres_.Stop();
  postgres_.Start();
  matcher_->Reconnect();
  matcher_->Commit(matcher_core::Release("a"));
  event = Next(*watch);
  EXPECT_EQ(event.kind(), Event::KIND_RELEASED);
  EXPECT_EQ(event.job_id(), "a");
  const auto later = std::make_shared<AllocationWatch>(v1::WatchAllocationsRequest(), 10'000);
  feed.Watch(kPool, later);
  EXPECT_EQ(Next(*later).job_id(), "b");
  EXPECT_EQ(Next(*later).kind(), Event::KIND_SYNCED);
  // One event is a piece.
  matcher_->Hold("c");
  const auto slow = std::make_shared<AllocationWatch>(v1::WatchAllocationsRequest(), 800);
  feed.Watch(kPool, slow);
  EXPECT_EQ(Next(*slow).job_id(), "b");
  matcher_->Commit(matcher_core::Release("b"));
  // Of the list the rest and its end, in this order; what happens meanwhile, whenever it is heard
  // of.
  std::vector<std::pair<Event::Kind, std::string>> listed;
  std::vector<std::pair<Event::Kind, std::string>> happened;
  for (int i = 0; i < 3; ++i) {
    event = Next(*slow);
    (event.kind() == Event::KIND_RELEASED ? happened : listed)
        .emplace_back(event.kind(), event.job_id());
  }
  EXPECT_THAT(listed, ElementsAre(Pair(Event::KIND_HELD, "c"), Pair(Event::KIND_SYNCED, "")));
  EXPECT_THAT(happened, ElementsAre(Pair(Event::KIND_RELEASED, "b")));
  const auto nowhere = std::make_shared<AllocationWatch>(v1::WatchAllocationsRequest(), 10'000);
  feed.Watch("nowhere", nowhere);
  absl::Status end;
  while (nowhere->Take(&event, &end, [] {}) == AllocationWatch::Taken::kNothing) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(absl::IsNotFound(end)) << end;
}

TEST_F(PoolPicturesTest, WhoMayNotLookIsToldNothing) {
  MakePool();
  matcher_->Hold("a");
  access::FakeAuthority authority;
  authority.rights.insert({"ann", "get pools/graph"});
  const GraphJudge judge(&authority);
  job_store::FactStore facts(
      {.dsn = postgres_.dsn_of("graph"), .application = "graph", .schema = "queue"}, 1);
  peers::Peers queues({}, facts);
  AllocationFeed feed(*pictures_);
  rpc::WorkerPool workers(1);
  Claims claims(queues, workers);
  ClusterCalls calls(*pictures_, feed, claims, judge, workers);
  v1::GetJobRequest request;
  request.set_pool(kPool);
  request.set_job_id("a");
  v1::WatchAllocationsRequest watched;
  watched.set_pool(kPool);
  for (const auto& [user, wanted] : {std::pair("ann", absl::StatusCode::kOk),
                                     std::pair("bob", absl::StatusCode::kPermissionDenied)}) {
    const CallInfo call{.deadline = std::chrono::system_clock::now() + 30s,
                        .cancelled = [] { return false; },
                        .caller = {.user = user, .groups = {}}};
    v1::GetJobResponse job;
    std::promise<absl::Status> got;
    calls.GetJob(call, &request, &job, [&](const absl::Status& status) { got.set_value(status); });
    EXPECT_EQ(got.get_future().get().code(), wanted) << user;
    v1::FindRequest find;
    find.set_pool(kPool);
    find.set_criteria("status=up");
    v1::FindResponse vertices;
    std::promise<absl::Status> found;
    calls.Find(
        call, &find, &vertices, [&](const absl::Status& status) { found.set_value(status); });
    EXPECT_EQ(found.get_future().get().code(), wanted) << user;
    v1::GetGraphRequest graph;
    graph.set_pool(kPool);
    const auto reader = calls.GetGraph(call, graph);
    v1::GetGraphResponse piece;
    std::promise<absl::Status> read;
    reader->Next(&piece, [&](const absl::StatusOr<bool>& more) { read.set_value(more.status()); });
    EXPECT_EQ(read.get_future().get().code(), wanted) << user;
    const auto watch = std::make_shared<AllocationWatch>(watched, 10'000);
    calls.Watch(call, watch);
    if (wanted == absl::StatusCode::kOk) {
      EXPECT_EQ(Next(*watch).job_id(), "a");
      continue;
    }
    Event event;
    absl::Status end;
    while (watch->Take(&event, &end, [] {}) == AllocationWatch::Taken::kNothing) {
      std::this_thread::yield();
    }
    EXPECT_EQ(end.code(), wanted);
  }
}

}  // namespace
}  // namespace fluxqueue::graph_service
