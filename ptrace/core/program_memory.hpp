// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A program's memory: the contents of its image and, for the rest, the files that are mapped.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoder/trace/code_reader.hpp"
#include "ptrace/core/mapped_file.hpp"
#include "ptrace/core/program_image.hpp"

namespace backtrail::tracee {

/// Never invents bytes: memory that is neither in the image nor in a mapped file is unreadable. A
/// file whose first page differs from the one in the image has been replaced and is not used.
class ProgramMemory final : public decoder::CodeReader {
 public:
  /// `core` is borrowed. Files are looked for under each of `roots`, then at their own path.
  explicit ProgramMemory(const decoder::CoreFile& core, std::vector<std::string> roots = {});
  explicit ProgramMemory(std::unique_ptr<const ProgramImage> image,
                         std::vector<std::string> roots = {});
  ~ProgramMemory() override;

  [[nodiscard]] arch::Isa isa() const override { return image_->isa(); }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    return read(address, out);
  }
  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out);

  /// Like read(), but only from the image itself.
  std::size_t read_persistent(TraceeAddr address, std::span<std::uint8_t> out) const {
    return image_->read(address, out);
  }

  /// Like read(), but only bytes that cannot have been different while their mapping existed: pages
  /// of programs and libraries that the program may not write, as far as they equal the file's
  /// bytes, and the vdso. Other files may change while they are mapped; code without a file was
  /// written by the program.
  std::size_t read_constant(TraceeAddr address, std::span<std::uint8_t> out);

  /// Returns true if a mapped file is a program or a library. False if unknown.
  [[nodiscard]] bool is_elf(const std::string& path);

  [[nodiscard]] const ProgramImage& image() const { return *image_; }
  /// Returns the path at which a mapped file is found unchanged; nullopt if it is not.
  [[nodiscard]] std::optional<std::string> find_file(const std::string& path);
  /// Returns sentences about files that could not be used, in the order in which they were needed.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct File {
    std::string path;  ///< Path at which it was found; empty if it was not.
    std::optional<MappedFile> file;
  };
  File& file(const std::string& path);
  [[nodiscard]] bool is_the_mapped_one(const std::string& path, const MappedFile& file) const;
  std::size_t read_file(TraceeAddr address, std::span<std::uint8_t> out);
  std::size_t read_constant(const decoder::CoreSegment& segment, TraceeAddr at,
                            std::span<std::uint8_t> wanted);
  [[nodiscard]] bool has_elf_header(TraceeAddr start);
  [[nodiscard]] std::uint64_t never_writable(const decoder::CoreMapping& mapping, TraceeAddr at);

  std::unique_ptr<const ProgramImage> image_;
  std::vector<std::string> roots_;
  std::map<std::string, File> files_;  ///< By the path in the image.
  std::map<std::string, bool> elf_;    ///< Answers of is_elf(), by path.
  std::vector<std::string> problems_;
};

}  // namespace backtrail::tracee
