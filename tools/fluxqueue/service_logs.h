// What each service reads that reads a log.
#pragma once

#include <map>
#include <string>

#include "libs/kafka/topics.h"

namespace fluxqueue::cli {

inline const std::map<std::string, std::string>& ServiceLogs() {
  static const kafka::TopicNames kNames;
  static const std::map<std::string, std::string> kLogs = {
      {"binder", kNames.jobs}, {"matcher", kNames.pool}, {"queue", kNames.pool}};
  return kLogs;
}

}  // namespace fluxqueue::cli
