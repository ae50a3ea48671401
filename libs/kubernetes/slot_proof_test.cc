#include "libs/kubernetes/slot_proof.h"

#include <set>

#include <gtest/gtest.h>

namespace fluxqueue::kubernetes {
namespace {

TEST(SlotProof, TheTextStaysAsItIs) {
  EXPECT_EQ(
      SlotProofText("u", "lab", "job", {.attempt = 2, .part = 0, .slot = 1, .slots = 4}, "n1"),
      "fluxqueue slot 1\n1 u\n3 lab\n3 job\n7 2.0.1/4\n2 n1\n");
}

TEST(SlotProof, AnyOtherFieldIsAnotherText) {
  const SlotName slot{.attempt = 2, .part = 0, .slot = 1, .slots = 4};
  const std::set<std::string> texts = {
      SlotProofText("u", "lab", "job", slot, "n1"),
      SlotProofText("v", "lab", "job", slot, "n1"),
      SlotProofText("u", "web", "job", slot, "n1"),
      SlotProofText("u", "lab", "other", slot, "n1"),
      SlotProofText("u", "lab", "job", {.attempt = 3, .part = 0, .slot = 1, .slots = 4}, "n1"),
      SlotProofText("u", "lab", "job", {.attempt = 2, .part = 1, .slot = 1, .slots = 4}, "n1"),
      SlotProofText("u", "lab", "job", {.attempt = 2, .part = 0, .slot = 2, .slots = 4}, "n1"),
      SlotProofText("u", "lab", "job", {.attempt = 2, .part = 0, .slot = 1, .slots = 5}, "n1"),
      SlotProofText("u", "lab", "job", slot, "n2"),
      // The same letters, parted otherwise.
      SlotProofText("ul", "ab", "job", slot, "n1"),
      SlotProofText("u\n3 lab", "", "job", slot, "n1"),
  };
  EXPECT_EQ(texts.size(), 11);
}

}  // namespace
}  // namespace fluxqueue::kubernetes
