#include "libs/kubernetes/kinds.h"

#include <string>

#include <gtest/gtest.h>

namespace fluxqueue::kubernetes {
namespace {

ObjectMeta OwnedBy(const char* version, const char* kind, bool controller = true) {
  ObjectMeta meta;
  meta.owners = {
      {.api_version = version, .kind = kind, .name = "o", .uid = "u", .controller = controller}};
  return meta;
}

TEST(KindsTest, AreFoundByGroupAndResource) {
  ASSERT_EQ(Kinds().size(), 5);
  const Kind* cron = FindKind("batch", "cronjobs");
  ASSERT_NE(cron, nullptr);
  EXPECT_EQ(cron->kind, "CronJob");
  EXPECT_EQ(cron->template_, "/spec/jobTemplate");
  EXPECT_EQ(cron->makes, "jobs");
  EXPECT_NE(FindKind("", "replicationcontrollers"), nullptr);
  EXPECT_EQ(FindKind("apps", "daemonsets"), nullptr);
  EXPECT_EQ(FindKind("batch", "deployments"), nullptr);
}

TEST(KindsTest, OnlyItsControllerMakesWhatComesOfATemplate) {
  const std::string accounts = "system:serviceaccount:kube-system:";
  const ObjectMeta of_set = OwnedBy("apps/v1", "ReplicaSet");
  EXPECT_TRUE(IsFromTemplate(of_set, accounts + "replicaset-controller"));
  EXPECT_TRUE(IsFromTemplate(of_set, "system:kube-controller-manager"));
  EXPECT_FALSE(IsFromTemplate(of_set, accounts + "statefulset-controller"));
  EXPECT_FALSE(IsFromTemplate(of_set, "system:serviceaccount:work:replicaset-controller"));
  EXPECT_FALSE(IsFromTemplate(of_set, "ann"));
  EXPECT_FALSE(IsFromTemplate(OwnedBy("x/v1", "ReplicaSet"), "system:kube-controller-manager"));
  EXPECT_FALSE(IsFromTemplate(OwnedBy("apps/v1", "Deployment"), "system:kube-controller-manager"));
  EXPECT_FALSE(
      IsFromTemplate(OwnedBy("apps/v1", "ReplicaSet", false), "system:kube-controller-manager"));
  EXPECT_TRUE(
      IsFromTemplate(OwnedBy("v1", "ReplicationController"), accounts + "replication-controller"));
  EXPECT_FALSE(IsFromTemplate({}, "system:kube-controller-manager"));
}

}  // namespace
}  // namespace fluxqueue::kubernetes
