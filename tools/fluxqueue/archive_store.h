// Where the archive of a pool is kept: files that are written once and then only read. Their names
// are relative to the archive, and have at most one folder in front: "snapshots/17.gz".
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::cli {

// A file on this machine; one that is temporary goes with this.
class LocalFile {
 public:
  static LocalFile Lasting(std::string path) { return LocalFile(std::move(path), false); }
  static LocalFile Temporary(std::string path) { return LocalFile(std::move(path), true); }
  ~LocalFile();
  LocalFile(LocalFile&& other) noexcept;
  LocalFile& operator=(LocalFile&&) = delete;

  const std::string& path() const { return path_; }

 private:
  LocalFile(std::string path, bool temporary) : path_(std::move(path)), temporary_(temporary) {}

  std::string path_;
  bool temporary_;
};

class ArchiveStore {
 public:
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();

  virtual ~ArchiveStore() = default;

  // The files right in a folder, "" or one with its closing slash, by name. Of a folder that is not
  // there: none.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // With at least the first `bytes` of it. NotFound: there is no such file. It must not outlive the
  // store.
  virtual absl::StatusOr<LocalFile> Get(const std::string& name, size_t bytes) = 0;
  absl::StatusOr<LocalFile> Get(const std::string& name) { return Get(name, kAll); }
  // Makes of a file on this machine one of the archive, as a whole or not at all, in place of what
  // was there. The file is used up.
  virtual absl::Status Put(const LocalFile& file, const std::string& name) = 0;
  // Where a file can be written that is then put; the same for the same `name`.
  virtual absl::StatusOr<LocalFile> Scratch(const std::string& name) = 0;
  // For people.
  virtual std::string PathOf(const std::string& name) const = 0;
};

std::shared_ptr<ArchiveStore> FolderStore(std::string folder);

// "s3://BUCKET/PREFIX" (s3_store.h), or a folder. InvalidArgument: the environment does not say
// where the store is.
absl::StatusOr<std::shared_ptr<ArchiveStore>> OpenArchive(const std::string& place);

}  // namespace fluxqueue::cli
