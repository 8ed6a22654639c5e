// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A program's memory at one moment, as a map with contents: a core file's, or a stopped process's.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/corefile/core_file.hpp"

namespace backtrail::tracee {

/// Immutable as far as anybody can see.
class ProgramImage {
 public:
  ProgramImage() = default;
  ProgramImage(const ProgramImage&) = delete;
  ProgramImage& operator=(const ProgramImage&) = delete;
  virtual ~ProgramImage() = default;
  [[nodiscard]] virtual arch::Isa isa() const = 0;
  /// Returns the address of the vdso; 0 if there is none.
  [[nodiscard]] virtual TraceeAddr vdso() const = 0;
  /// Mappings of files, by address.
  [[nodiscard]] virtual const std::vector<decoder::CoreMapping>& mappings() const = 0;
  /// Returns the file mapping that contains `address`; null if there is none.
  [[nodiscard]] virtual const decoder::CoreMapping* mapping_at(TraceeAddr address) const = 0;
  /// Returns the part of the memory that contains `address`; null if there is none.
  [[nodiscard]] virtual const decoder::CoreSegment* segment_at(TraceeAddr address) const = 0;
  /// Copies bytes from `address` on, as far as the image has them. Returns their number.
  [[nodiscard]] virtual std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) const = 0;
};

/// The image in a core file, which is borrowed.
class CoreImage final : public ProgramImage {
 public:
  explicit CoreImage(const decoder::CoreFile& core) : core_{core} {}
  [[nodiscard]] arch::Isa isa() const override { return core_.isa(); }
  [[nodiscard]] TraceeAddr vdso() const override;
  [[nodiscard]] const std::vector<decoder::CoreMapping>& mappings() const override {
    return core_.mappings();
  }
  [[nodiscard]] const decoder::CoreMapping* mapping_at(TraceeAddr address) const override {
    return core_.mapping_at(address);
  }
  [[nodiscard]] const decoder::CoreSegment* segment_at(TraceeAddr address) const override {
    return core_.segment_at(address);
  }
  [[nodiscard]] std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) const override {
    return core_.read(address, out);
  }

 private:
  const decoder::CoreFile& core_;
};

}  // namespace backtrail::tracee
