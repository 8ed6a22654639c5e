// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Watchpoints on data of the past.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::server {

/// Compares watched data at neighbouring places of the past.
class PastWatches {
 public:
  void insert(TraceeAddr address, std::uint64_t length);
  void remove(TraceeAddr address, std::uint64_t length);
  [[nodiscard]] bool empty() const { return watches_.empty(); }

  /// Reads memory at a place of the past. Returns the number of bytes that are known.
  using Read = std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)>;
  /// The watched data at a place, in the order of the watches; nullopt if not known.
  using State = std::vector<std::optional<std::vector<std::uint8_t>>>;
  [[nodiscard]] State state(const Read& read) const;

  struct Change {
    TraceeAddr address;  ///< Address of the watch.
    bool is_known;       ///< Both values are known. Otherwise the data may not have changed.
  };
  /// Returns the first watch whose data differ between two neighbouring places, or are known at
  /// only one of them; nullopt if there is none.
  [[nodiscard]] std::optional<Change> change(const State& one, const State& other) const;
  /// Returns the first watch whose data are known at neither of two neighbouring places; nullopt if
  /// there is none.
  [[nodiscard]] std::optional<TraceeAddr> unknown(const State& one, const State& other) const;

 private:
  struct Watch {
    TraceeAddr address;
    std::uint64_t length;
    bool operator==(const Watch&) const = default;
  };
  std::vector<Watch> watches_;
};

}  // namespace backtrail::server
