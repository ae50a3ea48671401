#include "libs/model/speaker.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace fluxqueue::model {
namespace {

using events::v1::Envelope;

TEST(SpeakerTest, IsTheServiceThatSaysSuch) {
  EXPECT_EQ(SpeakerOf(Envelope::kJobSubmitted), "admission");
  EXPECT_EQ(SpeakerOf(Envelope::kCommandAccepted), "queue");
  EXPECT_EQ(SpeakerOf(Envelope::kCycleAnswered), "matcher");
  EXPECT_EQ(SpeakerOf(Envelope::kSlotsVacated), "binder");
  EXPECT_EQ(SpeakerOf(Envelope::kInventorySynced), "cleanup");
  EXPECT_EQ(SpeakerOf(Envelope::EVENT_NOT_SET), "");
}

TEST(SpeakerTest, EachEventHasOne) {
  const auto* oneof = Envelope::descriptor()->FindOneofByName("event");
  ASSERT_GT(oneof->field_count(), 20);
  for (int i = 0; i < oneof->field_count(); ++i) {
    const auto event = static_cast<Envelope::EventCase>(oneof->field(i)->number());
    EXPECT_NE(SpeakerOf(event), "") << oneof->field(i)->name();
  }
}

}  // namespace
}  // namespace fluxqueue::model
