#pragma once
/// @file
/// Where processes have the same files: their addresses may be random (personality(2) may refuse
/// to change that in containers).

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/trace/record.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

/// Translates addresses of one process to those that another one has for the same place of a file
/// (or of the vdso). Addresses that only one of them knows stay as they are.
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
