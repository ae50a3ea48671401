#include "tools/fluxqueue/archive_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/s3_store.h"

namespace fluxqueue::cli {
namespace {

// So that the name never stands for less than the whole, also when the machine loses its power.
absl::Status Flush(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = file >= 0 && fsync(file) == 0;
  const int error = errno;
  if (file >= 0) close(file);
  if (flushed) return absl::OkStatus();
  return InvalidArgument("{}: cannot be written: {}", path, strerrordesc_np(error));
}

class Folder final : public ArchiveStore {
 public:
  explicit Folder(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator it(PathOf(folder), error);
    if (error == std::errc::no_such_file_or_directory) return names;
    for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
      if (it->is_directory(error)) continue;
      names.push_back(folder + it->path().filename().string());
    }
    if (error) return InvalidArgument("{}: {}", PathOf(folder), error.message());
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<LocalFile> Get(const std::string& name, size_t /*bytes*/) override {
    std::error_code error;
    if (std::filesystem::exists(PathOf(name), error)) return LocalFile::Lasting(PathOf(name));
    return MakeStatus(absl::StatusCode::kNotFound, "{}: there is no such file", PathOf(name));
  }

  absl::Status Put(const LocalFile& file, const std::string& name) override {
    const std::string path = PathOf(name);
    RETURN_IF_ERROR(Flush(file.path()));
    RETURN_IF_ERROR(MakeFolderOf(path));
    std::error_code error;
    std::filesystem::rename(file.path(), path, error);
    if (error) return InvalidArgument("{}: cannot be written: {}", path, error.message());
    return Flush(std::filesystem::path(path).parent_path().string());
  }

  absl::StatusOr<LocalFile> Scratch(const std::string& name) override {
    std::string path = PathOf(name + ".part");
    RETURN_IF_ERROR(MakeFolderOf(path));
    return LocalFile::Temporary(std::move(path));
  }

  std::string PathOf(const std::string& name) const override {
    return name.empty() ? folder_ : folder_ + "/" + name;
  }

 private:
  static absl::Status MakeFolderOf(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!error) return absl::OkStatus();
    return InvalidArgument("{}: cannot be made: {}", folder.string(), error.message());
  }

  const std::string folder_;
};

}  // namespace

LocalFile::~LocalFile() {
  std::error_code ignored;
  if (temporary_) std::filesystem::remove(path_, ignored);
}

LocalFile::LocalFile(LocalFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, false)) {}

std::shared_ptr<ArchiveStore> FolderStore(std::string folder) {
  return std::make_shared<Folder>(std::move(folder));
}

absl::StatusOr<std::shared_ptr<ArchiveStore>> OpenArchive(const std::string& place) {
  if (!IsS3(place)) return FolderStore(place);
  ASSIGN_OR_RETURN(S3Place s3, ParseS3(place, [](const std::string& name) -> std::string {
                     const char* value = std::getenv(name.c_str());
                     return value == nullptr ? "" : value;
                   }));
  return S3Store(std::move(s3));
}

}  // namespace fluxqueue::cli
