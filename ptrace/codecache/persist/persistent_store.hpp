// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The persistent cache: a private folder of files, or memory while a recorder runs.
///
/// Files may vanish at any moment. They are written whole or not at all and checked when read; the
/// oldest are removed beyond a limit.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ptrace/codecache/persist/file_identities.hpp"
#include "ptrace/codecache/persist/persistent_file.hpp"
#include "ptrace/codecache/persist/seeds.hpp"
#include "ptrace/codecache/persist/unsaved_counts.hpp"

namespace backtrail::tracee::cache {

class PersistentStore {
 public:
  /// An empty `folder` means memory only.
  explicit PersistentStore(std::filesystem::path folder);
  /// Removes the oldest files if there are too many.
  ~PersistentStore();
  PersistentStore(const PersistentStore&) = delete;
  PersistentStore& operator=(const PersistentStore&) = delete;

  /// Returns the translations for a key; null if there are none.
  std::shared_ptr<const PersistentCode> find(const std::string& key);
  /// Returns true if find() may find some.
  [[nodiscard]] bool has(const std::string& key) const;
  /// Writes the translations at once. They are then used from the file, so that tens of megabytes
  /// are not held twice. Returns them; null if they could not be written.
  std::shared_ptr<const PersistentCode> put(const std::string& key, const PersistentPieces& code);
  /// Removes the translations of a key.
  void forget(const std::string& key);
  /// Call when a process ends: returns how many superblocks it and others before it made since the
  /// translations were last put.
  std::size_t add_unsaved(const std::string& key, std::size_t made);

  /// Returns the seed for programs of a kind; nullopt if there is none.
  std::optional<Seed> seed(const std::string& kind);
  void set_seed(const std::string& kind, const Seed& who);

  /// Returns true if something that was put could not be written to the folder: it is found by this
  /// object only.
  [[nodiscard]] bool lost() const { return lost_; }

  /// Returns the identity of the file at a path (file_identities.hpp); nullopt if it cannot be
  /// read, or does not cover `bytes` bytes of the file from `offset` on.
  std::optional<std::uint64_t> identity_of(const std::string& path, std::uint64_t offset,
                                           std::uint64_t bytes);

  /// Returns $XDG_CACHE_HOME/backtrail or ~/.cache/backtrail; empty if neither is known or
  /// BACKTRAIL_KEEP=0.
  static std::filesystem::path default_folder();

 private:
  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const;
  [[nodiscard]] bool folder_is_private(bool make) const;
  /// Writes to the folder; null if that is impossible.
  std::shared_ptr<const PersistentCode> put_in_folder(const std::string& key,
                                                      const PersistentPieces& code);
  void remove_oldest() const;

  std::filesystem::path folder_;
  Seeds seeds_;
  FileIdentities identities_;
  UnsavedCounts unsaved_;
  std::map<std::string, std::shared_ptr<const PersistentCode>> entries_;
  bool wrote_ = false;
  bool lost_ = false;
};

}  // namespace backtrail::tracee::cache
