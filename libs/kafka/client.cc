#include "libs/kafka/client.h"

#include <array>
#include <cctype>
#include <fstream>
#include <vector>

#include <absl/strings/str_split.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::kafka {
namespace {

constexpr size_t kErrorText = 512;
constexpr std::string_view kPlaintext = "plaintext://";

struct Servers {
  std::string list;  // as librdkafka has it
  bool plaintext = false;
  bool here = true;  // all are on this machine
};

Servers ParseServers(std::string_view bootstrap) {
  Servers servers;
  const std::vector<std::string> listed = absl::StrSplit(ToAbsl(bootstrap), ',');
  for (std::string_view server : listed) {
    if (server.starts_with(kPlaintext)) {
      server.remove_prefix(kPlaintext.size());
      servers.plaintext = true;
    }
    servers.here =
        servers.here && (server.starts_with("127.") || server.starts_with("localhost:") ||
                         server.starts_with("[::1]"));
    servers.list.append(servers.list.empty() ? "" : ",").append(server);
  }
  return servers;
}

// librdkafka's levels are syslog's. Its chatter about connections is no event of ours: errors come
// as statuses.
void OnLog(const rd_kafka_t* /*client*/, int level, const char* facility, const char* text) {
  constexpr int kSyslogError = 3;
  if (level > kSyslogError) return;
  const std::string_view said(text);
  // To every call a password or certificate that is refused is a broker that is away.
  if (said.find("SASL") != said.npos || said.find("SSL") != said.npos) {
    LogWarning("Kafka is not reached", {{"because", text}});
    return;
  }
  LogDebug("librdkafka", {{"facility", facility}, {"text", text}});
}

}  // namespace

bool IsHere(const Brokers& brokers) {
  return ParseServers(brokers.bootstrap).here;
}

ClientConfig::ClientConfig(const Brokers& brokers, std::string_view client_id)
    : conf_(rd_kafka_conf_new()) {
  rd_kafka_conf_set_log_cb(conf_.get(), &OnLog);
  if (!brokers.properties.empty()) SetFromFile(brokers.properties);
  SetServers(brokers);
  Set("client.id", std::string(client_id));
  Set("socket.keepalive.enable", "true");
  Set("socket.nagle.disable", "true");
  // After a broker's restart: seconds matter more than the load of trying.
  Set("reconnect.backoff.ms", "50");
  Set("reconnect.backoff.max.ms", "1000");
  // How soon a topic that was deleted and made anew is noticed.
  Set("topic.metadata.refresh.interval.ms", "5000");
  Set("topic.metadata.propagation.max.ms", "5000");
}

ClientConfig& ClientConfig::Set(const char* key, const std::string& value) {
  std::array<char, kErrorText> text{};
  if (rd_kafka_conf_set(conf_.get(), key, value.c_str(), text.data(), text.size()) !=
          RD_KAFKA_CONF_OK &&
      status_.ok()) {
    status_ = InvalidArgument("Kafka setting {}: {}", key, text.data());
  }
  return *this;
}

void ClientConfig::SetServers(const Brokers& brokers) {
  const Servers servers = ParseServers(brokers.bootstrap);
  Set("bootstrap.servers", servers.list);
  if (says_protocol_ && servers.plaintext && SecurityProtocol() != "plaintext" && status_.ok()) {
    status_ = InvalidArgument(
        "kafka.bootstrap says {} and {} says security.protocol={}: take one of the two away",
        kPlaintext,
        brokers.properties,
        SecurityProtocol());
  }
  if (says_protocol_) return;
  const bool tls = !servers.plaintext && !servers.here;
  const std::string sasl = says_sasl_ ? "sasl_" : "";
  Set("security.protocol", sasl + (tls ? "ssl" : "plaintext"));
}

std::string ClientConfig::SecurityProtocol() const {
  std::array<char, kErrorText> text{};
  size_t size = text.size();
  rd_kafka_conf_get(conf_.get(), "security.protocol", text.data(), &size);
  return text.data();
}

void ClientConfig::SetFromFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) status_ = InvalidArgument("Kafka's properties: {} cannot be read", path);
  std::string line;
  for (int number = 1; status_.ok() && std::getline(file, line); ++number) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0)
      line.pop_back();
    if (line.empty() || line.starts_with('#')) continue;
    const size_t equals = line.find('=');
    const std::string key = line.substr(0, equals);
    // Whatever else can be set decides what is delivered, and is ours.
    if (equals == std::string::npos ||
        !(key == "security.protocol" || key.starts_with("ssl.") || key.starts_with("sasl."))) {
      // Not the line: it may hold a password.
      status_ = InvalidArgument(
          "{}:{}: is no key=value with a key among security.protocol, ssl.*, sasl.*", path, number);
      return;
    }
    says_protocol_ = says_protocol_ || key == "security.protocol";
    says_sasl_ = says_sasl_ || key.starts_with("sasl.");
    Set(key.c_str(), line.substr(equals + 1));
  }
}

absl::StatusOr<ClientHandle> ClientConfig::Create(rd_kafka_type_t type) {
  RETURN_IF_ERROR(status_);
  std::array<char, kErrorText> text{};
  // On success the client owns the configuration.
  ClientHandle client(rd_kafka_new(type, conf_.get(), text.data(), text.size()));
  if (client == nullptr) return InvalidArgument("Kafka client: {}", text.data());
  (void)conf_.release();
  return client;
}

Message CopyMessage(const rd_kafka_message_t& record) {
  Message message;
  message.partition = record.partition;
  message.offset = record.offset;
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  message.append_time = Millis{rd_kafka_message_timestamp(&record, &type)};
  message.key.assign(static_cast<const char*>(record.key), record.key_len);
  message.value.assign(static_cast<const char*>(record.payload), record.len);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&record, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return message;
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  for (size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    message.headers.emplace_back(name, std::string(static_cast<const char*>(value), size));
  }
  return message;
}

absl::Status KafkaStatus(rd_kafka_resp_err_t code, std::string_view doing) {
  const auto status = [&](absl::StatusCode status_code, std::string_view hint = "") {
    return MakeStatus(status_code, "{}: {}{}", doing, rd_kafka_err2str(code), hint);
  };
  switch (code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return absl::OkStatus();
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return status(absl::StatusCode::kNotFound, " (services make missing topics)");
    case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
      return status(
          absl::StatusCode::kFailedPrecondition,
          " (kafka.session_timeout must not be below the broker's group.min.session.timeout.ms: "
          "raise the one or lower the other)");
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
      return status(absl::StatusCode::kFailedPrecondition,
                    " (another process has the same `instance`: give each replica its own)");
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return status(absl::StatusCode::kFailedPrecondition,
                    " (deploy/docs/security.md says which rights are wanted in Kafka)");
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__FATAL:
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
      return status(absl::StatusCode::kFailedPrecondition);
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      return status(absl::StatusCode::kInvalidArgument, " (see the topic's max.message.bytes)");
    default:
      return status(absl::StatusCode::kUnavailable);
  }
}

}  // namespace fluxqueue::kafka
