// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/persistent_store.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "ptrace/codecache/persist/kept_name.hpp"
#include "ptrace/codecache/persist/validation.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostFolderBytes = 1024ULL << 20;
constexpr mode_t kOnlyOwner = 0700;
constexpr mode_t kOwnerFile = 0600;

bool is_ours(const struct stat& facts) {
  return facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// The file of a descriptor, mapped.
class FileView {
 public:
  /// `read_soon`: all of it will be read.
  FileView(int fd, std::uint64_t size, bool read_soon) {
    // Files are replaced, never written to, so mapped contents do not change.
    const int flags = MAP_PRIVATE | (read_soon ? MAP_POPULATE : 0);
    void* mapped = ::mmap(nullptr, size, PROT_READ, flags, fd, 0);
    if (mapped == MAP_FAILED) return;
    bytes_ = {static_cast<const std::uint8_t*>(mapped), size};
  }
  ~FileView() {
    if (!bytes_.empty())
      ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());  // NOLINT
  }
  FileView(const FileView&) = delete;
  FileView& operator=(const FileView&) = delete;
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
};

std::shared_ptr<const PersistentCode> map_code(int fd, const struct stat& facts,
                                               const std::string& key, bool whole) {
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size == 0 || size > kMostPersistentFileBytes) return nullptr;
  const auto view = std::make_shared<const FileView>(fd, size, !whole);
  return PersistentCode::from_bytes(view->bytes(), key, view, whole);
}

/// Maps the file just written.
std::shared_ptr<const PersistentCode> map_written(int fd, const std::string& key) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return nullptr;
  return map_code(fd, facts, key, true);  // clang 14 loses track of the shared_ptr
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

}  // namespace

PersistentStore::PersistentStore(fs::path folder)
    : folder_{std::move(folder)},
      seeds_{folder_},
      identities_{folder_.empty() ? fs::path{} : folder_ / "identities"},
      unsaved_{folder_.empty() ? fs::path{} : folder_ / "unsaved"} {}

PersistentStore::~PersistentStore() {
  const bool has_news = identities_.has_news() || unsaved_.has_news();
  if (has_news && !folder_.empty() && folder_is_private(false)) {
    if (identities_.has_news()) identities_.save();
    if (unsaved_.has_news()) unsaved_.save();
  }
  if (wrote_) remove_oldest();
}

fs::path PersistentStore::default_folder() {
  if (const char* keep = std::getenv("BACKTRAIL_KEEP"); keep != nullptr && *keep == '0') return {};
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && *base == '/') {
    return fs::path{base} / "backtrail";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return fs::path{home} / ".cache" / "backtrail";
  }
  return {};
}

bool PersistentStore::folder_is_private(bool make) const {
  if (make) {
    std::error_code ignored;
    fs::create_directories(folder_.parent_path(), ignored);
    ::mkdir(folder_.c_str(), kOnlyOwner);
  }
  struct stat facts {};
  return ::lstat(folder_.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && is_ours(facts);
}

fs::path PersistentStore::file_of(const std::string& key) const {
  return folder_ / kept_name(key, "code");
}

std::shared_ptr<const PersistentCode> PersistentStore::find(const std::string& key) {
  if (const auto known = entries_.find(key); known != entries_.end()) return known->second;
  auto& code = entries_[key];
  if (folder_.empty() || !folder_is_private(false)) return nullptr;
  const fs::path path = file_of(key);
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  struct stat facts {};
  if (!fd || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || !is_ours(facts)) {
    return nullptr;
  }
  const bool validated = is_validated(path, facts);
  code = map_code(fd.get(), facts, key, validated);
  if (!code) log::ptrace().debug("kept code of {} is of no use", key);
  if (code && !validated) note_validated(path, facts);
  return code;
}

bool PersistentStore::has(const std::string& key) const {
  if (const auto known = entries_.find(key); known != entries_.end())
    return known->second != nullptr;
  std::error_code error;
  return !folder_.empty() && fs::is_regular_file(file_of(key), error);
}

std::shared_ptr<const PersistentCode> PersistentStore::put(const std::string& key,
                                                           const PersistentPieces& code) {
  auto made = put_in_folder(key, code);
  if (!made) {
    lost_ = true;
    const UniqueFd memory{::memfd_create("backtrail", MFD_CLOEXEC)};
    if (memory && write_persistent(memory.get(), key, code)) made = map_written(memory.get(), key);
  }
  if (made) entries_[key] = made;
  unsaved_.clear(key);
  return made;
}

std::size_t PersistentStore::add_unsaved(const std::string& key, std::size_t made) {
  return unsaved_.add(key, made, !folder_.empty() && folder_is_private(false));
}

void PersistentStore::forget(const std::string& key) {
  entries_.erase(key);
  unsaved_.clear(key);
  if (folder_.empty() || !folder_is_private(false)) return;
  const fs::path path = file_of(key);
  std::error_code ignored;
  fs::remove(path, ignored);
  fs::remove(validation_note(path), ignored);
}

std::optional<Seed> PersistentStore::seed(const std::string& kind) {
  return seeds_.find(kind, !folder_.empty() && folder_is_private(false));
}

void PersistentStore::set_seed(const std::string& kind, const Seed& who) {
  seeds_.set(kind, who, !folder_.empty() && folder_is_private(true));
}

std::optional<std::uint64_t> PersistentStore::identity_of(const std::string& path,
                                                          std::uint64_t offset,
                                                          std::uint64_t bytes) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  if (const auto known = identities_.known(facts, offset, bytes)) return known;
  // A pipe may have taken the file's place.
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!fd || ::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  if (!identity_covers(fd.get(), static_cast<std::uint64_t>(facts.st_size), offset, bytes)) {
    return std::nullopt;
  }
  const auto identity =
      identities_.of(fd.get(), facts, !folder_.empty() && folder_is_private(false));
  if (identity) identities_.note_covered(facts, offset, bytes);
  return identity;
}

std::shared_ptr<const PersistentCode> PersistentStore::put_in_folder(const std::string& key,
                                                                     const PersistentPieces& code) {
  if (folder_.empty() || !folder_is_private(true)) return nullptr;
  const fs::path target = file_of(key);
  const fs::path made = fmt::format("{}.{}", target.string(), ::getpid());
  const UniqueFd fd{
      ::open(made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerFile)};
  if (!fd) return nullptr;
  if (!write_persistent(fd.get(), key, code) || ::rename(made.c_str(), target.c_str()) != 0) {
    ::unlink(made.c_str());
    return nullptr;
  }
  wrote_ = true;
  return map_written(fd.get(), key);
}

void PersistentStore::remove_oldest() const {
  struct File {
    fs::file_time_type changed;
    std::uint64_t size = 0;
    fs::path path;
  };
  std::vector<File> files;
  std::uint64_t total = 0;
  std::error_code error;
  for (const auto& each : fs::directory_iterator{folder_, error}) {
    File file{each.last_write_time(error), each.file_size(error), each.path()};
    if (error) continue;
    total += file.size;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.changed < b.changed; });
  for (const File& file : files) {
    if (total <= kMostFolderBytes) break;
    fs::remove(file.path, error);
    fs::remove(validation_note(file.path), error);
    total -= file.size;
  }
}

}  // namespace backtrail::tracee::cache
