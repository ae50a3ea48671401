// Takes lists and watch lines apart without parsing the objects in them, private to this library.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes::internal {

// Who an object is. Views into the text or into the parser, valid until its next use.
struct ObjectIdentity {
  std::string_view space;
  std::string_view name;
  std::string_view uid;
  std::string_view resource_version;
};

struct ListPage {
  std::string resource_version;
  std::string continue_token;  // empty: the last page
};

// {"type":"ADDED","object":{…}}
struct WatchLine {
  std::string type;
  std::string_view object;
};

// Texts must be followed by SIMDJSON_PADDING bytes that may be read. One thread.
class ListReader {
 public:
  absl::StatusOr<ListPage> ReadPage(std::string& body,
                                    const std::function<absl::Status(std::string_view)>& item);
  absl::StatusOr<WatchLine> ReadLine(simdjson::padded_string_view line);
  absl::StatusOr<ObjectIdentity> ReadIdentity(simdjson::padded_string_view object);

 private:
  simdjson::ondemand::parser parser_;
};

// Room to read past the end of `text`.
simdjson::padded_string_view Padded(std::string& text);

}  // namespace fluxqueue::kubernetes::internal
