// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Compares addresses of processes that have the same files at different, random addresses
/// (containers may forbid personality(2), which would fix the addresses).

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/trace/record.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

/// Translates an address of one process to the address at which the other has the same place of a
/// file (or of the vdso). An address that only one process has stays unchanged.
class FilePlaces {
 public:
  FilePlaces(std::span<const tracee::MapEntry> from, std::span<const tracee::MapEntry> to);

  [[nodiscard]] TraceeAddr translated(TraceeAddr address) const;
  void translate(std::span<decoder::Record> records) const;

 private:
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t distance = 0;  ///< Modulo 2^64.
  };
  std::vector<Place> places_;
};

}  // namespace backtrail::server
