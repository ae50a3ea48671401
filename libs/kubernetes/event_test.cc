#include "libs/kubernetes/event.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/clock.h"

namespace fluxqueue::kubernetes {
namespace {

using nlohmann::json;

Event Refused() {
  return {.component = "admission",
          .instance = "admission-0",
          .type = "Warning",
          .reason = "Refused",
          .action = "Submit",
          .note = "too large",
          .regarding = {"batch/v1", "Job", "lab", "train", "uid-1"},
          .at = std::chrono::system_clock::time_point(Millis(1'769'860'801'500))};
}

TEST(Event, IsAboutItsObject) {
  EXPECT_EQ(json::parse(EventText(Refused())), json::parse(R"({
    "apiVersion":"events.k8s.io/v1","kind":"Event",
    "metadata":{"namespace":"lab","generateName":"fluxqueue-"},
    "eventTime":"2026-01-31T12:00:01.500000Z",
    "reportingController":"fluxqueue.io/admission","reportingInstance":"admission-0",
    "action":"Submit","reason":"Refused","type":"Warning","note":"too large",
    "regarding":{"apiVersion":"batch/v1","kind":"Job","namespace":"lab","name":"train",
                 "uid":"uid-1"}})"));
}

TEST(Event, ANameOfItsOwnIsWrittenOnce) {
  Event event = Refused();
  event.name = "uid-1.3";
  const json meta = json::parse(EventText(event))["metadata"];
  EXPECT_EQ(meta, json::parse(R"({"namespace":"lab","name":"uid-1.3"})"));
}

TEST(Event, ANoteIsCutAtWhatTheApiServerTakes) {
  Event event = Refused();
  event.note = std::string(999, 'x') + "€ and more";
  EXPECT_EQ(json::parse(EventText(event))["note"], std::string(997, 'x') + "…");
  event.note = "\xE2\x82";
  EXPECT_EQ(json::parse(EventText(event))["note"], "\uFFFD");
}

}  // namespace
}  // namespace fluxqueue::kubernetes
