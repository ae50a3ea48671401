#include "services/binder/adapters/slot_proofs.h"

#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/slot_proof.h"

namespace fluxqueue::binder {
namespace {

using ::testing::HasSubstr;

const std::string kKey(SlotProofs::kLeastKeyBytes, 'k');

Call BindCall() {
  Call call;
  call.job_id = "job";
  call.attempt = 2;
  call.slot = 1;
  call.slots = 4;
  call.space = "lab";
  call.uid = "u";
  call.node = "n1";
  return call;
}

// As the pod watch shows it afterwards.
PodFacts BoundPod(const std::string& proof) {
  PodFacts pod;
  pod.uid = "u";
  pod.job_id = "job";
  pod.space = "lab";
  pod.node = "n1";
  pod.slot = kubernetes::SlotName{.attempt = 2, .part = 0, .slot = 1, .slots = 4};
  pod.proof = proof;
  return pod;
}

TEST(SlotProofs, HoldOfThePodThatWasGivenTheSlotAndOfNoOther) {
  const SlotProofs proofs(kKey);
  const PodFacts own = BoundPod(proofs.Prove(BindCall()));
  EXPECT_EQ(own.proof.size(), kubernetes::kProofBytes);
  EXPECT_TRUE(proofs.Holds(own));
  const auto changed = [&](const std::function<void(PodFacts&)>& change) {
    PodFacts pod = own;
    change(pod);
    return proofs.Holds(pod);
  };
  EXPECT_FALSE(changed([](PodFacts& pod) { pod.uid = "v"; }));
  EXPECT_FALSE(changed([](PodFacts& pod) { pod.job_id = "other"; }));
  EXPECT_FALSE(changed([](PodFacts& pod) { pod.space = "web"; }));
  EXPECT_FALSE(changed([](PodFacts& pod) { pod.node = "n2"; }));
  EXPECT_FALSE(changed([](PodFacts& pod) { pod.slot->slot = 2; }));
  EXPECT_FALSE(changed([](PodFacts& pod) { pod.slot->attempt = 3; }));
  EXPECT_FALSE(changed([](PodFacts& pod) { pod.slot.reset(); }));
  EXPECT_FALSE(changed([](PodFacts& pod) { pod.proof.clear(); }));
  EXPECT_FALSE(changed([](PodFacts& pod) { pod.proof = "no base64"; }));
}

TEST(SlotProofs, AnotherKeyProvesNothing) {
  const SlotProofs other(std::string(SlotProofs::kLeastKeyBytes, 'o'));
  EXPECT_FALSE(SlotProofs(kKey).Holds(BoundPod(other.Prove(BindCall()))));
}

TEST(SlotProofs, TheKeyIsAFileOfRandomBytes) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / fmt::format("proof-{}.key", getpid());
  const auto read = [&file](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    return SlotProofs::Read(file.string());
  };
  const auto proofs = read(kKey);
  ASSERT_TRUE(proofs.ok()) << Message(proofs.status());
  EXPECT_TRUE(SlotProofs(kKey).Holds(BoundPod(proofs->Prove(BindCall()))));
  EXPECT_THAT(Message(read("short").status()), HasSubstr("has 5 bytes; allowed: 32 to 4096"));
  EXPECT_THAT(Message(read(std::string(4097, 'k')).status()), HasSubstr("has 4097 bytes"));
  std::filesystem::remove(file);
  EXPECT_THAT(Message(SlotProofs::Read(file.string()).status()), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace fluxqueue::binder
