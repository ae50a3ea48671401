#include "libs/access/queue_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::access {
namespace {

using ::testing::HasSubstr;

kubernetes::FluxQueue Named(const std::string& name, const std::string& parent = "") {
  kubernetes::FluxQueue queue;
  queue.meta.name = name;
  queue.parent = parent;
  return queue;
}

TEST(QueueAccessTest, AVerbIsAGrantInTheQueueAndBelowIt) {
  QueuesByName queues;
  queues["account"] = Named("account");
  queues["account"].subjects = {{.kind = "User", .name = "boss", .verbs = {"cancel"}},
                                {.kind = "Group", .name = "staff", .verbs = {"view"}}};
  queues["lab"] = Named("lab", "account");
  queues["lab"].subjects = {{.kind = "User", .name = "ann", .verbs = {"move", "hold"}}};
  struct Case {
    const char* queue;
    const char* verb;
    const char* user;
    std::vector<std::string> groups;
    bool may;
  };
  for (const Case& c : std::vector<Case>{
           {"lab", "cancel", "boss", {}, true},
           {"account", "cancel", "boss", {}, true},
           {"lab", "hold", "boss", {}, false},
           {"lab", "move", "ann", {}, true},
           {"account", "move", "ann", {}, false},
           {"lab", "cancel", "ann", {}, false},
           {"lab", "view", "eve", {"others", "staff"}, true},
           {"lab", "view", "staff", {}, false},
           {"lab", "view", "eve", {}, false},
       }) {
    EXPECT_EQ(Grants(WayUp(queues[c.queue], queues), c.verb, c.user, c.groups), c.may)
        << c.user << " " << c.verb << " " << c.queue;
  }
}

TEST(QueueAccessTest, AParentCountsInItsOwnPoolOnly) {
  QueuesByName queues;
  queues["account"] = Named("account");
  queues["account"].pool = "other";
  queues["account"].subjects = {{.kind = "User", .name = "boss", .verbs = {"cancel"}}};
  queues["lab"] = Named("lab", "account");
  queues["round"] = Named("round", "about");
  queues["about"] = Named("about", "round");
  EXPECT_FALSE(Grants(WayUp(queues["lab"], queues), "cancel", "boss", {}));
  EXPECT_EQ(WayUp(queues["round"], queues).size(), 1U);
}

TEST(QueueAccessTest, OnlyTheNamedMaySubmitWhereAnyAre) {
  QueuesByName queues;
  queues["open"] = Named("open");
  queues["open"].subjects = {{.kind = "User", .name = "ann", .verbs = {"cancel"}}};
  queues["lab"] = Named("lab", "open");
  queues["lab"].subjects = {{.kind = "User", .name = "ann", .verbs = {"submit"}}};
  const Way open = WayUp(queues["open"], queues);
  const Way lab = WayUp(queues["lab"], queues);
  EXPECT_FALSE(NamesSubmitters(open));
  EXPECT_TRUE(NamesSubmitters(lab));
  EXPECT_FALSE(SubmitProblem("eve", {}, open));
  EXPECT_FALSE(SubmitProblem("ann", {}, lab));
  EXPECT_THAT(SubmitProblem("eve", {}, lab).value_or(""), HasSubstr("FluxQueue 'lab' says who"));
}

TEST(QueueAccessTest, AClaimIsOfNoNamespace) {
  QueuesByName queues;
  queues["lab"] = Named("lab");
  queues["lab"].namespace_selector = kubernetes::LabelSelector{.labels = {{"team", "lab"}}};
  queues["club"] = Named("club");
  queues["club"].members.users = {"ann"};
  const kubernetes::StringMap none;
  const kubernetes::StringMap team = {{"team", "lab"}};
  const Way lab = WayUp(queues["lab"], queues);
  EXPECT_FALSE(TakesProblem({"ann", "lab", team}, lab));
  EXPECT_THAT(TakesProblem({"ann", "", none}, lab).value_or(""),
              HasSubstr("a claim of a user without a namespace is none"));
  const Way club = WayUp(queues["club"], queues);
  EXPECT_FALSE(TakesProblem({"ann", "", none}, club));
  EXPECT_THAT(TakesProblem({"eve", "evil", none}, club).value_or(""),
              HasSubstr("namespace 'evil' and user 'eve' are none"));
}

TEST(QueueAccessTest, APriorityIsBoundedByTheQueueAndThoseAboveIt) {
  QueuesByName queues;
  queues["account"] = Named("account");
  queues["account"].max_priority = 10;
  queues["lab"] = Named("lab", "account");
  queues["lab"].max_priority = 100;
  const Way lab = WayUp(queues["lab"], queues);
  EXPECT_FALSE(PriorityProblem(10, std::nullopt, lab));
  EXPECT_EQ(PriorityProblem(11, std::nullopt, lab).value_or(""),
            "11 is more than FluxQueue 'account' allows; allowed: up to 10");
  EXPECT_THAT(PriorityProblem(101, std::nullopt, lab).value_or(""), HasSubstr("'lab'"));
  EXPECT_FALSE(PriorityProblem(50, 50, lab)) << "that it has already";
  EXPECT_TRUE(PriorityProblem(51, 50, lab));
}

}  // namespace
}  // namespace fluxqueue::access
