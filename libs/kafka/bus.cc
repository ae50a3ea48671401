#include "libs/kafka/bus.h"

#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/consumer.h"
#include "libs/kafka/producer.h"
#include "libs/kafka/rights.h"

namespace fluxqueue::kafka {
namespace {

class KafkaBus final : public Bus {
 public:
  absl::StatusOr<std::unique_ptr<Subscription>> Join(const ConsumerOptions& options) override {
    return Consumer::Create(options);
  }
  absl::StatusOr<std::unique_ptr<Appender>> Open(const Brokers& brokers,
                                                 std::string_view client_id,
                                                 OnAcknowledged on_acknowledged) override {
    return Producer::Create(brokers, client_id, std::move(on_acknowledged));
  }
  absl::Status MakeTopics(const Brokers& brokers,
                          std::string_view service,
                          const TopicNames& names) override {
    ASSIGN_OR_RETURN(const auto admin, Admin::Create(brokers));
    ASSIGN_OR_RETURN(const Admin::Ensured topics,
                     admin->EnsureTopics(TopicSpecsOf(service, names)));
    for (const std::string& topic : topics.made) LogInfo("topic made", {{"topic", topic}});
    for (const std::string& warning : topics.warnings) LogWarning(warning);
    return absl::OkStatus();
  }
};

}  // namespace

std::shared_ptr<Bus> RealBus() {
  return std::make_shared<KafkaBus>();
}

}  // namespace fluxqueue::kafka
