#pragma once
/// @file
/// A dead program's memory: what the core holds, and the files it had mapped for the rest.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/trace/code_reader.hpp"
#include "ptrace/core/mapped_file.hpp"

namespace backtrail::tracee {

/// Never invents bytes: what is neither in the core nor in the file that was mapped is unreadable.
/// A file whose first page is not the one in the core has been replaced since, and is not used.
class CoreMemory final : public decoder::CodeReader {
 public:
  /// `core` is borrowed. Files are looked for below each of `roots`, then at their own place.
  explicit CoreMemory(const decoder::CoreFile& core, std::vector<std::string> roots = {});
  ~CoreMemory() override;

  [[nodiscard]] arch::Isa isa() const override { return core_.isa(); }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    return read(address, out);
  }
  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out);

  /// As read(), but only what is in the core itself.
  std::size_t read_kept(TraceeAddr address, std::span<std::uint8_t> out) const {
    return core_.read(address, out);
  }

  /// As read(), but only what cannot have been anything else while its mapping was there: pages
  /// of programs and libraries that the program may not write, as far as they hold the file's own
  /// bytes, and the vdso. Other files may change while they are mapped; code without a file was
  /// written by the program.
  std::size_t read_constant(TraceeAddr address, std::span<std::uint8_t> out);

  /// Whether a mapped file is a program or a library. False if that is not known.
  [[nodiscard]] bool is_elf(const std::string& path);

  /// Where a mapped file is found, and is the one that was mapped.
  [[nodiscard]] std::optional<std::string> find_file(const std::string& path);
  /// Sentences about files that could not be used, in the order they were wanted.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Image {
    std::string path;  ///< Where it was found; empty: nowhere.
    std::optional<MappedFile> file;
  };
  Image& image(const std::string& path);
  [[nodiscard]] bool is_the_mapped_one(const std::string& path, const MappedFile& file) const;
  std::size_t read_file(TraceeAddr address, std::span<std::uint8_t> out);
  std::size_t read_constant(const decoder::CoreSegment& segment, TraceeAddr at,
                            std::span<std::uint8_t> wanted);
  [[nodiscard]] bool has_elf_header(TraceeAddr start);
  [[nodiscard]] bool is_writable_data(const decoder::CoreMapping& mapping, TraceeAddr at);

  const decoder::CoreFile& core_;
  TraceeAddr vdso_;
  std::vector<std::string> roots_;
  std::map<std::string, Image> images_;  ///< By the path in the core.
  std::map<std::string, bool> elf_;      ///< Answers of is_elf(), by path.
  std::vector<std::string> problems_;
};

}  // namespace backtrail::tracee
