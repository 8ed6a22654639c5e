#include "ptrace/cache/kept_store.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "ptrace/cache/kept_seal.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostFolderBytes = 1024ULL << 20;
constexpr std::uint64_t kMostFileBytes = 256ULL << 20;
constexpr mode_t kOnlyOwner = 0700;
constexpr mode_t kOwnerFile = 0600;

std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 0xcbf2'9ce4'8422'2325ULL;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3ULL;
  return value;
}

bool is_ours(const struct stat& facts) {
  return facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// A file's content, mapped; empty for what is not a plain file of ours.
class FileView {
 public:
  explicit FileView(const fs::path& path) {
    const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (!fd || ::fstat(fd.get(), &facts_) != 0 || !S_ISREG(facts_.st_mode) || !is_ours(facts_)) {
      return;
    }
    const auto size = static_cast<std::uint64_t>(facts_.st_size);
    if (size == 0 || size > kMostFileBytes) return;
    sealed_ = is_sealed(path, facts_);
    // Files are replaced, never written to, so what is mapped stays. All of it is read to check it.
    const int flags = MAP_PRIVATE | (sealed_ ? 0 : MAP_POPULATE);
    void* mapped = ::mmap(nullptr, size, PROT_READ, flags, fd.get(), 0);
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
  [[nodiscard]] const struct stat& facts() const { return facts_; }
  [[nodiscard]] bool sealed() const { return sealed_; }

 private:
  std::span<const std::uint8_t> bytes_;
  struct stat facts_ {};
  bool sealed_ = false;
};

bool write_all(int fd, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace

KeptStore::KeptStore(fs::path folder) : folder_{std::move(folder)} {}

KeptStore::~KeptStore() {
  bool wrote = false;
  for (const auto& [key, entry] : entries_) {
    if (!entry.is_new || folder_.empty() || !folder_is_private(true)) continue;
    write(key, *entry.code);
    wrote = true;
  }
  if (wrote) remove_oldest();
}

fs::path KeptStore::default_folder() {
  if (const char* keep = std::getenv("BACKTRAIL_KEEP"); keep != nullptr && *keep == '0') return {};
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && *base == '/') {
    return fs::path{base} / "backtrail";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return fs::path{home} / ".cache" / "backtrail";
  }
  return {};
}

bool KeptStore::folder_is_private(bool make) const {
  if (make) {
    std::error_code ignored;
    fs::create_directories(folder_.parent_path(), ignored);
    ::mkdir(folder_.c_str(), kOnlyOwner);
  }
  struct stat facts {};
  return ::lstat(folder_.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && is_ours(facts);
}

fs::path KeptStore::file_of(const std::string& key) const {
  return folder_ / fmt::format("{:016x}.code", hash(key));
}

std::shared_ptr<const KeptCode> KeptStore::find(const std::string& key) {
  if (const auto known = entries_.find(key); known != entries_.end()) return known->second.code;
  Entry& entry = entries_[key];
  if (folder_.empty() || !folder_is_private(false)) return nullptr;
  const fs::path path = file_of(key);
  const auto file = std::make_shared<const FileView>(path);
  if (file->bytes().empty()) return nullptr;
  entry.code = KeptCode::from_bytes(file->bytes(), key, file, file->sealed());
  if (!entry.code) log::ptrace().debug("kept code of {} is of no use", key);
  if (entry.code && !file->sealed()) seal(path, file->facts());
  return entry.code;
}

void KeptStore::put(const std::string& key, std::shared_ptr<const KeptCode> code) {
  if (!code) return;
  entries_[key] = {std::move(code), true};
}

void KeptStore::write(const std::string& key, const KeptCode& code) const {
  const std::vector<std::uint8_t> bytes = code.to_bytes(key);
  if (bytes.size() > kMostFileBytes) return;
  const fs::path target = file_of(key);
  const fs::path made = fmt::format("{}.{}", target.string(), ::getpid());
  UniqueFd fd{
      ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerFile)};
  if (!fd) return;
  const bool whole = write_all(fd.get(), bytes);
  fd.reset();
  if (!whole || ::rename(made.c_str(), target.c_str()) != 0) ::unlink(made.c_str());
}

void KeptStore::remove_oldest() const {
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
    fs::remove(seal_of(file.path), error);
    total -= file.size;
  }
}

}  // namespace backtrail::tracee::cache
