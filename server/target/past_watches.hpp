// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Data that a debugger watches while it goes through the past.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::server {

class PastWatches {
 public:
  void insert(TraceeAddr address, std::uint64_t length);
  void remove(TraceeAddr address, std::uint64_t length);
  [[nodiscard]] bool empty() const { return watches_.empty(); }

  /// Reads memory at some place of the past. @return How many bytes are known.
  using Read = std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)>;
  /// What the watched data were at a place, in the order of the watches; nullopt: not known.
  using State = std::vector<std::optional<std::vector<std::uint8_t>>>;
  [[nodiscard]] State state(const Read& read) const;

  struct Change {
    TraceeAddr address;  ///< Of the watch.
    bool is_known;       ///< Both values are; else there may have been a write.
  };
  /// The first watch whose data differ between two neighbouring places.
  [[nodiscard]] std::optional<Change> change(const State& one, const State& other) const;
  /// The first watch whose data are known at neither of two neighbouring places.
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
