// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of a stopped process as an image from which its past is derived.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ptrace/core/program_image.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::server {

/// Memory as the program sees it, without breakpoints. Pages are read once; nothing must change
/// them while the object exists. Shared mappings, the recorder's own and those that the kernel
/// writes are in no segment.
class LiveImage final : public tracee::ProgramImage {
 public:
  /// `process` is borrowed.
  LiveImage(tracee::Process& process, const std::vector<tracee::MapEntry>& maps, TraceeAddr vdso);

  [[nodiscard]] arch::Isa isa() const override { return process_.isa(); }
  [[nodiscard]] TraceeAddr vdso() const override { return vdso_; }
  [[nodiscard]] const std::vector<decoder::CoreMapping>& mappings() const override {
    return mappings_;
  }
  [[nodiscard]] const decoder::CoreMapping* mapping_at(TraceeAddr address) const override;
  [[nodiscard]] const decoder::CoreSegment* segment_at(TraceeAddr address) const override;
  [[nodiscard]] std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) const override;

 private:
  [[nodiscard]] const std::vector<std::uint8_t>& page(std::uint64_t begin) const;

  tracee::Process& process_;
  TraceeAddr vdso_;
  std::vector<decoder::CoreMapping> mappings_;
  std::vector<decoder::CoreSegment> segments_;
  /// Pages that were read, by address; empty if unreadable.
  mutable std::unordered_map<std::uint64_t, std::vector<std::uint8_t>> pages_;
};

}  // namespace backtrail::server
