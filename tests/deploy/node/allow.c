// Gives a user of a Kafka the rights that deploy/docs/security.md asks for. The jars of tools/kafka have no tool for it.
//
//   allow BOOTSTRAP PRINCIPAL
#include <librdkafka/rdkafka.h>
#include <stdio.h>

int main(int argc, char** argv) {
  static const struct {
    rd_kafka_ResourceType_t type;
    const char* prefix;
    rd_kafka_AclOperation_t operation;
  } kRights[] = {
      {RD_KAFKA_RESOURCE_TOPIC, "fluxqueue.", RD_KAFKA_ACL_OPERATION_CREATE},
      {RD_KAFKA_RESOURCE_TOPIC, "fluxqueue.", RD_KAFKA_ACL_OPERATION_DESCRIBE},
      {RD_KAFKA_RESOURCE_TOPIC, "fluxqueue.", RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS},
      {RD_KAFKA_RESOURCE_TOPIC, "fluxqueue.", RD_KAFKA_ACL_OPERATION_READ},
      {RD_KAFKA_RESOURCE_TOPIC, "fluxqueue.", RD_KAFKA_ACL_OPERATION_WRITE},
      {RD_KAFKA_RESOURCE_GROUP, "fluxqueue.", RD_KAFKA_ACL_OPERATION_READ},
  };
  enum { kCount = sizeof kRights / sizeof *kRights };
  char said[512] = "usage: allow BOOTSTRAP PRINCIPAL";
  rd_kafka_AclBinding_t* bindings[kCount];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  if (argc != 3 || rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], said, sizeof said)) {
    fprintf(stderr, "%s\n", said);
    return 2;
  }
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, said, sizeof said);
  rd_kafka_queue_t* answers = rd_kafka_queue_new(client);
  for (int i = 0; i < kCount; ++i) {
    bindings[i] = rd_kafka_AclBinding_new(kRights[i].type, kRights[i].prefix, RD_KAFKA_RESOURCE_PATTERN_PREFIXED, argv[2],
                                          "*", kRights[i].operation, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, said, sizeof said);
  }
  rd_kafka_CreateAcls(client, bindings, kCount, NULL, answers);
  rd_kafka_event_t* answer = rd_kafka_queue_poll(answers, 10000);
  size_t count = 0;
  const rd_kafka_acl_result_t** results =
      answer ? rd_kafka_CreateAcls_result_acls(rd_kafka_event_CreateAcls_result(answer), &count) : NULL;
  for (size_t i = 0; i < count; ++i) {
    if (!rd_kafka_acl_result_error(results[i])) continue;
    fprintf(stderr, "%s\n", rd_kafka_error_string(rd_kafka_acl_result_error(results[i])));
    return 1;
  }
  return count == kCount ? 0 : 1;
}
