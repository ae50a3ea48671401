#include "tools/fluxqueue/gzip_file.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

constexpr size_t kChunk = size_t{1} << 16;

const char* ErrorOf(gzFile file) {
  int code = 0;
  const char* what = gzerror(file, &code);
  return code == Z_ERRNO ? strerrordesc_np(errno) : what;
}

}  // namespace

absl::StatusOr<GzipWriter> GzipWriter::Open(const std::string& path) {
  errno = 0;
  GzipHandle file(path == "-" ? gzdopen(dup(STDOUT_FILENO), "wb") : gzopen(path.c_str(), "wb"));
  if (file == nullptr) {
    return InvalidArgument("{}: cannot be written: {}", path, strerrordesc_np(errno));
  }
  return GzipWriter(path, std::move(file));
}

void GzipWriter::Write(std::string_view text) {
  if (text.empty() || failed_) return;
  failed_ = gzwrite(file_.get(), text.data(), static_cast<unsigned>(text.size())) <= 0;
}

absl::Status GzipWriter::Close() {
  const bool failed = gzclose(file_.release()) != Z_OK || failed_;
  if (failed) return InvalidArgument("{}: cannot be written", path_);
  return absl::OkStatus();
}

absl::Status ReadGzipLines(const std::string& path,
                           const std::function<absl::Status(std::string_view)>& each) {
  errno = 0;
  const GzipHandle file(gzopen(path.c_str(), "rb"));  // passes through what is not gzip
  if (file == nullptr) return InvalidArgument("{}: {}", path, strerrordesc_np(errno));
  std::array<char, kChunk> chunk{};
  std::string line;
  while (true) {
    const int got = gzread(file.get(), chunk.data(), chunk.size());
    if (got < 0) return InvalidArgument("{}: {}", path, ErrorOf(file.get()));
    if (got == 0) break;
    std::string_view text(chunk.data(), static_cast<size_t>(got));
    for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
      line += text.substr(0, end);
      RETURN_IF_ERROR(each(line));
      line.clear();
      text.remove_prefix(end + 1);
    }
    line += text;
  }
  // One that was cut short ends in the middle of a block, and reads as far as it goes.
  int code = Z_OK;
  (void)gzerror(file.get(), &code);
  if (code == Z_BUF_ERROR) return InvalidArgument("{}: it is cut short", path);
  return line.empty() ? absl::OkStatus() : each(line);
}

}  // namespace fluxqueue::cli
