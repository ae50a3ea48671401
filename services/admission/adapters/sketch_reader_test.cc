#include "services/admission/adapters/sketch_reader.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/admission/domain/objects_for_test.h"

namespace fluxqueue::admission {
namespace {

using nlohmann::json;

Sketch Read(const json& object) {
  const auto kind = object["kind"] == "Job" ? WorkloadKind::kJob : WorkloadKind::kPod;
  auto sketch = ReadSketch(kind, object.dump());
  EXPECT_TRUE(sketch.ok()) << sketch.status();
  return sketch.ok() ? *sketch : Sketch();
}

json Owner(const char* api_version, const char* kind, bool controller) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"name", "o"},
          {"uid", "uid-o"},
          {"controller", controller}};
}

TEST(SketchReaderTest, ReadsIdentity) {
  json job = JobJson();
  job["metadata"]["labels"] = {{"fluxqueue.io/held", "direct"}};
  const Sketch sketch = Read(job);
  EXPECT_EQ(sketch.space, "work");
  EXPECT_EQ(sketch.name, "j");
  EXPECT_EQ(sketch.uid, "uid-j");
  EXPECT_EQ(sketch.resource_version, "9");
  EXPECT_TRUE(sketch.held);
  EXPECT_FALSE(sketch.ended || sketch.going || sketch.bound);
  EXPECT_FALSE(Read(JobJson()).held);
}

TEST(SketchReaderTest, ReadsTheGroupOfPods) {
  json pod = PodJson();
  pod["metadata"]["annotations"] = {{"fluxqueue.io/group", "train/4"},
                                    {"fluxqueue.io/user", "system:serviceaccount:a:b"}};
  EXPECT_EQ(Read(pod).group, "work/train/4/system:serviceaccount:a:b");
  json of_a_job = pod;
  of_a_job["metadata"]["ownerReferences"] = json::array({Owner("batch/v1", "Job", true)});
  EXPECT_EQ(Read(of_a_job).group, Read(pod).group) << "which its Job is asked about";
  json job = JobJson();
  EXPECT_EQ(Read(job).group, "");
  job["metadata"]["annotations"] = pod["metadata"]["annotations"];
  EXPECT_EQ(Read(job).group, Read(pod).group) << "of its pods";
  EXPECT_EQ(Read(PodJson()).group, "");
}

TEST(SketchReaderTest, ReadsWhetherAPodTakesAPlace) {
  json pod = PodJson();
  EXPECT_FALSE(Read(pod).in_place);
  pod["metadata"]["annotations"] = {{"fluxqueue.io/place-of", "uid-driver"}};
  EXPECT_TRUE(Read(pod).in_place);
  pod["metadata"]["ownerReferences"] = json::array({Owner("batch/v1", "Job", true)});
  EXPECT_FALSE(Read(pod).in_place) << "its Job's template may have it of its user";
  pod["metadata"].erase("ownerReferences");
  pod["metadata"]["annotations"] = {{"fluxqueue.io/place-of", "no uid"}};
  EXPECT_FALSE(Read(pod).in_place);
}

TEST(SketchReaderTest, ReadsEnds) {
  json job = JobJson();
  job["status"]["conditions"] = json::array(
      {{{"type", "Suspended"}, {"status", "True"}}, {{"type", "Failed"}, {"status", "False"}}});
  EXPECT_FALSE(Read(job).ended);
  job["status"]["conditions"].push_back({{"status", "True"}, {"type", "Complete"}});
  EXPECT_TRUE(Read(job).ended);
  json pod = PodJson();
  for (const char* phase : {"Pending", "Running", "Unknown"}) {
    pod["status"]["phase"] = phase;
    EXPECT_FALSE(Read(pod).ended) << phase;
  }
  for (const char* phase : {"Succeeded", "Failed"}) {
    pod["status"]["phase"] = phase;
    EXPECT_TRUE(Read(pod).ended) << phase;
  }
}

TEST(SketchReaderTest, ReadsWhoControlsAPod) {
  json pod = PodJson();
  pod["metadata"]["ownerReferences"] = json::array({Owner("v1", "Thing", false)});
  EXPECT_EQ(Read(pod).controller_job, "");
  pod["metadata"]["ownerReferences"].push_back(Owner("batch/v1", "Job", true));
  EXPECT_EQ(Read(pod).controller_job, "uid-o");
  pod["metadata"]["ownerReferences"][1]["uid"] = std::string(64, 'u');
  EXPECT_EQ(Read(pod).controller_job, "");
  pod["metadata"]["ownerReferences"] = json::array({Owner("apps/v1", "ReplicaSet", true)});
  EXPECT_EQ(Read(pod).controller_job, "");
  json job = JobJson();
  job["metadata"]["ownerReferences"] = json::array({Owner("batch/v1", "CronJob", true)});
  EXPECT_EQ(Read(job).controller_job, "");
}

TEST(SketchReaderTest, TheDigestIsOfWhatUsersChange) {
  const uint64_t digest = Read(JobJson()).digest;
  json same = JobJson();
  same["metadata"]["resourceVersion"] = "10";
  same["metadata"]["managedFields"] = json::array({{{"manager", "m"}}});
  same["status"] = {{"active", 1}};
  EXPECT_EQ(Read(same).digest, digest);
  json generation = JobJson();
  generation["metadata"]["generation"] = 2;
  EXPECT_NE(Read(generation).digest, digest);
  json labels = JobJson();
  labels["metadata"]["labels"] = {{"a", "b"}};
  EXPECT_NE(Read(labels).digest, digest);
  json annotations = JobJson();
  annotations["metadata"]["annotations"] = {{"a", "b"}};
  EXPECT_NE(Read(annotations).digest, digest);
  EXPECT_NE(Read(annotations).digest, Read(labels).digest);
}

TEST(SketchReaderTest, ReadsBoundAndGoing) {
  json pod = PodJson();
  pod["spec"]["nodeName"] = "n1";
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(Read(pod).bound);
  EXPECT_TRUE(Read(pod).going);
}

TEST(SketchReaderTest, RefusesWhatIsNoObject) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"metadata": {"name": "x"}})", R"({"metadata": {"uid": 3}})"}) {
    EXPECT_FALSE(ReadSketch(WorkloadKind::kPod, text).ok()) << text;
  }
}

}  // namespace
}  // namespace fluxqueue::admission
