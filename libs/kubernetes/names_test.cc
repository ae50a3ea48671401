#include "libs/kubernetes/names.h"

#include <string>

#include <gtest/gtest.h>

#include "libs/kubernetes/resource.h"

namespace fluxqueue::kubernetes {
namespace {

TEST(Names, KnowLabelsAndSubdomains) {
  for (const char* good : {"a", "7", "team-a", "a--b"}) {
    EXPECT_TRUE(IsDnsLabel(good)) << good;
    EXPECT_TRUE(IsDnsSubdomain(good)) << good;
  }
  EXPECT_TRUE(IsDnsSubdomain("system.node-critical.x"));
  EXPECT_FALSE(IsDnsLabel("a.b"));
  EXPECT_TRUE(IsDnsLabel(std::string(63, 'a')));
  EXPECT_FALSE(IsDnsLabel(std::string(64, 'a')));
  EXPECT_TRUE(IsDnsSubdomain(std::string(253, 'a')));
  EXPECT_FALSE(IsDnsSubdomain(std::string(254, 'a')));
  for (const char* bad : {"",
                          "-a",
                          "a-",
                          "A",
                          "a_b",
                          "a/b",
                          "..",
                          ".",
                          "a.",
                          ".a",
                          "a..b",
                          "a.-b",
                          "../pods?x=",
                          "a%2fb",
                          "a b",
                          "\xc3\xa9"}) {
    EXPECT_FALSE(IsDnsLabel(bad)) << bad;
    EXPECT_FALSE(IsDnsSubdomain(bad)) << bad;
  }
  EXPECT_FALSE(IsDnsLabel(std::string_view("a\0b", 3)));
}

TEST(Names, ASegmentStaysASegment) {
  EXPECT_EQ(PathSegment("system.node-critical_~A"), "system.node-critical_~A");
  EXPECT_EQ(PathSegment(".."), "%2E%2E");
  EXPECT_EQ(PathSegment("."), "%2E");
  EXPECT_EQ(PathSegment("../pods?x=#\xff"), "..%2Fpods%3Fx%3D%23%FF");
  EXPECT_EQ(kPods.Path("../../nodes?x=", "..", "binding"),
            "/api/v1/namespaces/..%2F..%2Fnodes%3Fx%3D/pods/%2E%2E/binding");
  EXPECT_EQ(
      kPriorityClasses.Path("", "../../../../api/v1/pods?x="),
      "/apis/scheduling.k8s.io/v1/priorityclasses/..%2F..%2F..%2F..%2Fapi%2Fv1%2Fpods%3Fx%3D");
}

}  // namespace
}  // namespace fluxqueue::kubernetes
