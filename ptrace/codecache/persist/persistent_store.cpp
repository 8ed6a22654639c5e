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
#include "ptrace/codecache/persist/fixed_view.hpp"
#include "ptrace/codecache/persist/kept_name.hpp"
#include "ptrace/codecache/persist/validation.hpp"
#include "ptrace/os/file_facts.hpp"
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

/// Returns the code in a file; null if it is of no use. `validated`: the file was read before in
/// the state of view->facts().
std::shared_ptr<const PersistentCode> code_in(std::shared_ptr<FixedView> view,
                                              const std::string& key, bool validated) {
  const auto size = static_cast<std::uint64_t>(view->facts().st_size);
  if (size > kMostPersistentFileBytes || !view->map(!validated)) return nullptr;
  const bool whole = validated && view->is_as_it_was();
  const auto bytes = view->bytes();
  return PersistentCode::from_bytes(bytes, key, std::move(view), whole);
}

/// Opens the file just written, which another recorder may have replaced.
std::shared_ptr<const PersistentCode> open_written(const fs::path& path, const struct stat& written,
                                                   const std::string& key) {
  UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!fd) return nullptr;
  auto view = std::make_shared<FixedView>(std::move(fd));
  const struct stat& facts = view->facts();
  if (!S_ISREG(facts.st_mode) || !is_ours(facts)) return nullptr;
  const bool is_it = facts_of(facts) == facts_of(written);
  return code_in(std::move(view), key, is_it);
}

/// Writes the code to memory that nobody can change.
std::shared_ptr<const PersistentCode> put_in_memory(const std::string& key,
                                                    const PersistentPieces& code) {
  UniqueFd memory{::memfd_create("backtrail", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (!memory || !write_persistent(memory.get(), key, code) ||
      ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return nullptr;
  }
  return code_in(std::make_shared<FixedView>(std::move(memory)), key, true);
}

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
  UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (!fd) return nullptr;
  auto view = std::make_shared<FixedView>(std::move(fd));
  const struct stat facts = view->facts();
  if (!S_ISREG(facts.st_mode) || !is_ours(facts)) return nullptr;
  const bool validated = is_validated(path, facts);
  code = code_in(std::move(view), key, validated);
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
    made = put_in_memory(key, code);
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
  UniqueFd fd{::open(made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerFile)};
  if (!fd) return nullptr;
  if (!write_persistent(fd.get(), key, code) || ::rename(made.c_str(), target.c_str()) != 0) {
    ::unlink(made.c_str());
    return nullptr;
  }
  wrote_ = true;
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return nullptr;
  fd.reset();  // as long as it is open, nobody gets a lease
  return open_written(target, facts, key);
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
