// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Superblocks that processes made and did not save, counted by program: each process that ends
/// makes too few to be worth a new file, and the next one makes them again.

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

namespace backtrail::tracee::cache {

/// Counts by key of the PersistentStore, in a note beside the translations or in memory. The note
/// of the recorder that ends last wins.
class UnsavedCounts {
 public:
  /// An empty path means memory only.
  explicit UnsavedCounts(std::filesystem::path note) : note_{std::move(note)} {}

  /// Adds what one process made, and returns the sum since the translations were last saved.
  /// `may_read_note`: the folder can be trusted.
  std::size_t add(const std::string& key, std::size_t made, bool may_read_note);
  /// Call when the translations are saved or forgotten.
  void clear(const std::string& key);

  /// Returns true if the note would change.
  [[nodiscard]] bool has_news() const { return has_news_; }
  /// Writes the note.
  void save();

  /// Maximum number of programs in the note.
  static constexpr std::size_t kMostLines = 256;

 private:
  void read();

  std::filesystem::path note_;
  std::map<std::string, std::size_t> counts_;  ///< By kept_name() of the key.
  bool note_read_ = false;
  bool has_news_ = false;
};

}  // namespace backtrail::tracee::cache
