// Gzipped text on disk, a line at a time, so that a log of any length can be written and read.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <zlib.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::cli {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzipHandle = std::unique_ptr<std::remove_pointer_t<gzFile>, CloseGzip>;

class GzipWriter {
 public:
  // "-": standard output. InvalidArgument: it cannot be written.
  static absl::StatusOr<GzipWriter> Open(const std::string& path);

  // Errors show in Close.
  void Write(std::string_view text);
  absl::Status Close();

 private:
  GzipWriter(std::string path, GzipHandle file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  GzipHandle file_;
  bool failed_ = false;
};

// Each line without its end; of a file that is not gzipped, too. Stops at the first status that is
// not OK, and returns it. InvalidArgument: the file cannot be read, or is damaged.
absl::Status ReadGzipLines(const std::string& path,
                           const std::function<absl::Status(std::string_view)>& each);

}  // namespace fluxqueue::cli
