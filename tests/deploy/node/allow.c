// Gives principals of a Kafka rights: on standard input, one a line, "PRINCIPAL topic|group NAME OPERATION". The jars of
// tools/kafka have no tool for it.
//
//   allow BOOTSTRAP
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char* name;
  rd_kafka_AclOperation_t operation;
} kOperations[] = {
    {"Create", RD_KAFKA_ACL_OPERATION_CREATE}, {"Describe", RD_KAFKA_ACL_OPERATION_DESCRIBE},
    {"DescribeConfigs", RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS}, {"Read", RD_KAFKA_ACL_OPERATION_READ},
    {"Write", RD_KAFKA_ACL_OPERATION_WRITE},
};

int main(int argc, char** argv) {
  enum { kMost = 200 };
  char said[512] = "usage: allow BOOTSTRAP", principal[64], resource[64], name[64], operation[64];
  rd_kafka_AclBinding_t* bindings[kMost];
  size_t wanted = 0;
  while (wanted < kMost && scanf("%63s %63s %63s %63s", principal, resource, name, operation) == 4) {
    size_t i = 0;
    while (i < sizeof kOperations / sizeof *kOperations && strcmp(kOperations[i].name, operation)) ++i;
    if (i == sizeof kOperations / sizeof *kOperations) {
      fprintf(stderr, "unknown operation %s\n", operation);
      return 2;
    }
    bindings[wanted++] = rd_kafka_AclBinding_new(
        strcmp(resource, "group") ? RD_KAFKA_RESOURCE_TOPIC : RD_KAFKA_RESOURCE_GROUP, name, RD_KAFKA_RESOURCE_PATTERN_LITERAL,
        principal, "*", kOperations[i].operation, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, said, sizeof said);
  }
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  if (argc != 2 || wanted == 0 || rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], said, sizeof said)) {
    fprintf(stderr, "%s\n", said);
    return 2;
  }
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, said, sizeof said);
  rd_kafka_queue_t* answers = rd_kafka_queue_new(client);
  rd_kafka_CreateAcls(client, bindings, wanted, NULL, answers);
  rd_kafka_event_t* answer = rd_kafka_queue_poll(answers, 10000);
  size_t count = 0;
  const rd_kafka_acl_result_t** results =
      answer ? rd_kafka_CreateAcls_result_acls(rd_kafka_event_CreateAcls_result(answer), &count) : NULL;
  for (size_t i = 0; i < count; ++i) {
    if (!rd_kafka_acl_result_error(results[i])) continue;
    fprintf(stderr, "%s\n", rd_kafka_error_string(rd_kafka_acl_result_error(results[i])));
    return 1;
  }
  return count == wanted ? 0 : 1;
}
