#include "services/binder/adapters/slot_proofs.h"

#include <functional>

#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/signing/testing_keys.h"

namespace fluxqueue::binder {
namespace {

config::SigningConfig Signing(const signing::TestingKeys& files, const std::string& signer) {
  auto key = signing::Signer::Read(files.key_of(signer));
  auto keys = signing::Keys::Read(files.keys());
  CHECK(key.ok() && keys.ok(), "{}{}", Message(key.status()), Message(keys.status()));
  return {.signer = std::make_shared<const signing::Signer>(*std::move(key)),
          .keys = std::make_shared<const signing::Keys>(*std::move(keys))};
}

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
  const signing::TestingKeys files({"binder"});
  const SlotProofs proofs(Signing(files, "binder"));
  const ProofCheck holds = proofs.Check();
  const PodFacts own = BoundPod(proofs.Sign(BindCall()));
  EXPECT_TRUE(holds(own));
  const auto changed = [&](const std::function<void(PodFacts&)>& change) {
    PodFacts pod = own;
    change(pod);
    return holds(pod);
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

TEST(SlotProofs, AnotherServiceGivesNoSlots) {
  const signing::TestingKeys files({"binder", "queue"});
  const SlotProofs queue(Signing(files, "queue"));
  EXPECT_FALSE(queue.Check()(BoundPod(queue.Sign(BindCall()))));
}

TEST(SlotProofs, ThereAreNoneWithoutKeys) {
  const SlotProofs proofs(config::SigningConfig{});
  EXPECT_EQ(proofs.Sign(BindCall()), "");
  EXPECT_EQ(proofs.Check(), nullptr);
}

}  // namespace
}  // namespace fluxqueue::binder
