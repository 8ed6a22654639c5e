#pragma once
/// @file
/// Where kept translations are: in a private folder of files, or in memory while a recorder runs.
///
/// Files may vanish at any moment; they are written whole or not at all, checked when read, and
/// the oldest are removed past a bound.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ptrace/codecache/persist/kept_file.hpp"
#include "ptrace/codecache/persist/stand_ins.hpp"

namespace backtrail::tracee::cache {

class KeptStore {
 public:
  /// `folder` empty: memory only.
  explicit KeptStore(std::filesystem::path folder);
  /// Removes files when there are too many.
  ~KeptStore();
  KeptStore(const KeptStore&) = delete;
  KeptStore& operator=(const KeptStore&) = delete;

  /// nullptr when there is none.
  std::shared_ptr<const KeptCode> find(const std::string& key);
  /// find() may find it.
  [[nodiscard]] bool has(const std::string& key) const;
  /// Written at once, and found where it was written to: tens of megabytes are not held twice.
  void put(const std::string& key, const KeptPieces& code);
  /// There is nothing for it any more.
  void forget(const std::string& key);

  /// The entry that stands in for programs of a kind.
  std::optional<StandIn> stand_in(const std::string& kind);
  void set_stand_in(const std::string& kind, const StandIn& who);

  /// $XDG_CACHE_HOME/backtrail or ~/.cache/backtrail; empty when neither is known, or when
  /// BACKTRAIL_KEEP=0.
  static std::filesystem::path default_folder();

 private:
  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const;
  [[nodiscard]] bool folder_is_private(bool make) const;
  /// nullptr when that cannot be.
  std::shared_ptr<const KeptCode> put_in_folder(const std::string& key, const KeptPieces& code);
  void remove_oldest() const;

  std::filesystem::path folder_;
  StandIns stand_ins_;
  std::map<std::string, std::shared_ptr<const KeptCode>> entries_;
  bool wrote_ = false;
};

}  // namespace backtrail::tracee::cache
