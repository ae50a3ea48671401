#include "tools/fluxqueue/load/trace_file.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <type_traits>

#include <zlib.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::load {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr unsigned kChunk = 1 << 16;

struct Close {
  void operator()(gzFile file) const { gzclose(file); }
};
using File = std::unique_ptr<std::remove_pointer_t<gzFile>, Close>;

}  // namespace

absl::StatusOr<std::string> ReadTraceFile(const std::string& path) {
  errno = 0;
  const File file(gzopen(path.c_str(), "rb"));  // passes through what is not gzip
  if (file == nullptr) return InvalidArgument("{}: {}", path, strerrordesc_np(errno));
  std::string text;
  while (true) {
    const size_t before = text.size();
    if (before > kMaxBytes) {
      return InvalidArgument("{}: larger than {} MiB when unpacked", path, kMaxBytes >> 20);
    }
    text.resize(before + kChunk);
    const int got = gzread(file.get(), text.data() + before, kChunk);
    if (got < 0) {
      int code = 0;
      const char* what = gzerror(file.get(), &code);
      return InvalidArgument("{}: {}", path, code == Z_ERRNO ? strerrordesc_np(errno) : what);
    }
    text.resize(before + static_cast<size_t>(got));
    if (got == 0) return text;
  }
}

}  // namespace fluxqueue::load
