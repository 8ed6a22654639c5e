#pragma once
/// @file
/// Where kept translations are: in memory while a recorder runs, and in a private folder of files.
///
/// Files may vanish at any moment; they are written whole or not at all, checked when read, and
/// the oldest are removed past a bound.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "ptrace/cache/kept_code.hpp"

namespace backtrail::tracee::cache {

class KeptStore {
 public:
  /// `folder` empty: memory only.
  explicit KeptStore(std::filesystem::path folder);
  /// Writes what is new.
  ~KeptStore();
  KeptStore(const KeptStore&) = delete;
  KeptStore& operator=(const KeptStore&) = delete;

  /// nullptr when there is none.
  std::shared_ptr<const KeptCode> find(const std::string& key);
  void put(const std::string& key, std::shared_ptr<const KeptCode> code);

  /// $XDG_CACHE_HOME/backtrail or ~/.cache/backtrail; empty when neither is known, or when
  /// BACKTRAIL_KEEP=0.
  static std::filesystem::path default_folder();

 private:
  struct Entry {
    std::shared_ptr<const KeptCode> code;
    bool is_new = false;
  };
  [[nodiscard]] std::filesystem::path file_of(const std::string& key) const;
  [[nodiscard]] bool folder_is_private(bool make) const;
  void write(const std::string& key, const KeptCode& code) const;
  void remove_oldest() const;

  std::filesystem::path folder_;
  std::map<std::string, Entry> entries_;
};

}  // namespace backtrail::tracee::cache
