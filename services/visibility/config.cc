#include "services/visibility/config.h"

namespace fluxqueue::visibility {

using namespace std::chrono_literals;

config::Section Describe(VisibilityConfig* config) {
  rpc::ChannelFiles& files = config->queue_files;
  return config::Section()
      .Nested("api",
              config::Section()
                  .Text("address", &config->address)
                  .Int("port", &config->port, 0, 65535)
                  .Path("certificate", &config->certificate, config::Presence::kRequired)
                  .Path("key", &config->key, config::Presence::kRequired)
                  .Int("threads", &config->threads, 1, 64)
                  .Duration("drain", &config->drain, 0s, 10s))
      .Nested("queue",
              config::Section()
                  .Text("address", &config->queue_address, config::Presence::kRequired)
                  .Path("certificate", &files.certificate)
                  .Path("key", &files.key)
                  .Path("authority", &files.authority)
                  .Text("name", &files.name, config::Presence::kOptional))
      .Int("calls_per_user", &config->calls_per_user, 1, 1000);
}

}  // namespace fluxqueue::visibility
