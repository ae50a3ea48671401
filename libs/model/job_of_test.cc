#include "libs/model/job_of.h"

#include <gtest/gtest.h>

namespace fluxqueue::model {
namespace {

TEST(JobOfTest, MessagesOfOneJobNameIt) {
  events::v1::Envelope message;
  EXPECT_EQ(JobOf(message), "");
  message.mutable_released()->mutable_key()->set_job_id("released");
  EXPECT_EQ(JobOf(message), "released");
  message.mutable_slots_lost()->set_job_id("lost");
  EXPECT_EQ(JobOf(message), "lost");
  message.mutable_job_fact()->set_job_id("told");
  EXPECT_EQ(JobOf(message), "told");
  message.mutable_cycle_requested()->add_candidates()->set_job_id("candidate");
  EXPECT_EQ(JobOf(message), "");
}

TEST(JobOfTest, SoDoCommands) {
  events::v1::Envelope message;
  message.mutable_command_accepted();
  EXPECT_EQ(JobOf(message), "");
  message.mutable_command_accepted()->mutable_move_job()->set_job_id("moved");
  EXPECT_EQ(JobOf(message), "moved");
  message.mutable_command_accepted()->mutable_submit_claim()->set_job_id("claimed");
  EXPECT_EQ(JobOf(message), "claimed");
}

}  // namespace
}  // namespace fluxqueue::model
