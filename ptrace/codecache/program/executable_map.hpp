// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A program's executable memory, and who may change it.

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "ptrace/codecache/program/protected_pages.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee::cache {

/// Path of the kernel's code that is mapped into every program.
inline constexpr std::string_view kVdso = "[vdso]";

/// The readable executable memory of a process.
class ExecutableMap {
 public:
  /// Returns true if a private mapping may change even though the program cannot write to it.
  using MayChange = std::function<bool(const MapEntry&)>;
  /// Makes the map from `maps`, the mappings of the process. `ours`: address of a mapping of the
  /// recorder, which is left out. Pages in `protected_pages` count as writable, as the program made
  /// them.
  /// `older`: what from() made before; null: nothing yet.
  static ExecutableMap from(const std::vector<MapEntry>& maps, TraceeAddr ours,
                            const ProtectedPages& protected_pages, const MayChange& may_change,
                            const ExecutableMap* older = nullptr);

  struct Range {
    TraceeAddr begin;
    TraceeAddr end;
    std::uint64_t offset = 0;
    dev_t device = 0;
    std::uint64_t inode = 0;
    std::string path;
    /// Can be written, here or through another mapping, without a call that the server sees.
    bool may_change = false;
    /// Only the process itself can write it, and only here.
    bool own = false;
    /// Only the process itself can write it, but the file mapped there may change: pages that the
    /// process has written are its own copies, the others follow the file.
    bool copies = false;

    /// Returns true if other processes have other code there.
    [[nodiscard]] bool made_here() const { return may_change || (inode == 0 && path != kVdso); }
    /// Returns a mapping with the inode and the path of the file, and nothing else.
    [[nodiscard]] MapEntry file() const;
  };

  [[nodiscard]] bool contains(TraceeAddr address) const { return find(address) != nullptr; }
  [[nodiscard]] const Range* find(TraceeAddr address) const;
  /// Returns true if a part of [begin, end) is executable.
  [[nodiscard]] bool overlaps(TraceeAddr begin, TraceeAddr end) const;
  /// Returns true if code of this mapping's file is here and cannot change. Who writes the file of
  /// a range that may change was not asked.
  [[nodiscard]] bool knows_file_of(const MapEntry& mapping) const;
  /// Returns the ranges of this map that are missing or different in `newer`.
  [[nodiscard]] std::vector<std::pair<TraceeAddr, TraceeAddr>> lost_in(
      const ExecutableMap& newer) const;
  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }
  using Part = std::pair<TraceeAddr, TraceeAddr>;
  /// Returns all executable memory, including the recorder's, with the read-only memory of the same
  /// files around it.
  [[nodiscard]] const std::vector<Part>& everything() const { return everything_; }
  /// Returns the part of that which changes only with mappings: of files and the kernel's own.
  [[nodiscard]] const std::vector<Part>& constant() const { return constant_; }
  /// Returns read-only memory after code that is in neither, for a dynamic linker may be about to
  /// map data there. In the next map it will be constant unless it has changed.
  [[nodiscard]] const std::vector<Part>& growing() const { return growing_; }

 private:
  /// Leaves out the end of an image that may be incomplete.
  std::span<const MapEntry> without_growing(std::span<const MapEntry> image, const MapEntry* next,
                                            const ExecutableMap* older);
  void add_image(std::span<const MapEntry> maps);

  std::vector<Range> ranges_;     ///< Ascending.
  mutable std::size_t last_ = 0;  ///< Index of the range found last.
  std::vector<Part> everything_;
  std::vector<Part> constant_;
  std::vector<Part> growing_;
};

}  // namespace backtrail::tracee::cache
