#include "libs/model/speaker.h"

#include <array>

namespace fluxqueue::model {

std::string_view SpeakerOf(events::v1::Envelope::EventCase event) {
  constexpr std::array<std::string_view, 6> kSpeakers = {
      "", "admission", "queue", "matcher", "binder", "cleanup"};
  const size_t tens = static_cast<size_t>(event) / 10;
  return tens < kSpeakers.size() ? kSpeakers[tens] : "";
}

}  // namespace fluxqueue::model
