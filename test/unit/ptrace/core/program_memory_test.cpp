// SPDX-License-Identifier: Apache-2.0
// Reads a dead program's memory where the core leaves it to the mapped file.
#include "ptrace/core/program_memory.hpp"

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <elf.h>

#include <gtest/gtest.h>

#include "arch/base/page.hpp"
#include "decoder/corefile/core_file.hpp"
#include "ptrace/core/core_layout.hpp"
#include "ptrace/core/core_notes.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kBase = 0x7000'0000;

/// A library of one page of read-only data and one page of data that is writable until it is
/// relocated.
std::vector<std::uint8_t> library() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phnum = 2;
  Elf64_Phdr constant{};
  constant.p_type = PT_LOAD;
  constant.p_flags = PF_R;
  constant.p_memsz = kPageBytes;
  Elf64_Phdr relocated = constant;
  relocated.p_flags = PF_R | PF_W;
  relocated.p_vaddr = kPageBytes;
  std::vector<std::uint8_t> out(2 * kPageBytes, 0x11);
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, &constant, sizeof constant);
  std::memcpy(out.data() + sizeof header + sizeof constant, &relocated, sizeof relocated);
  return out;
}

/// Makes a core without the bytes of its only mapping, which is `path` from kBase on.
std::vector<std::uint8_t> core_that_maps(const std::string& path) {
  CoreNotes notes;
  notes.threads.resize(1);
  MapEntry entry;
  entry.start = kBase;
  entry.end = kBase + 2 * kPageBytes;
  entry.path = path;
  notes.files = {entry};
  const std::vector<std::uint8_t> bytes = notes.build();
  CoreLayout layout;
  layout.notes_offset = CoreLayout::header_bytes(arch::Isa::kAmd64, 1);
  layout.notes_bytes = bytes.size();
  layout.loads.push_back({.address = kBase, .memory_bytes = 2 * kPageBytes, .flags = PF_R});
  std::vector<std::uint8_t> file = layout.headers();
  file.insert(file.end(), bytes.begin(), bytes.end());
  return file;
}

/// The kernel merges neighbouring mappings whose permissions are equal in the end.
TEST(ProgramMemory, ConstantBytesEndWhereTheFilesHeadersAllowWrites) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "library.so";
  const auto contents = library();
  std::ofstream{path, std::ios::binary} << std::string{contents.begin(), contents.end()};
  const auto file = core_that_maps(path);
  const auto core = decoder::CoreFile::parse(file);
  ASSERT_TRUE(core) << core.error().message();
  ProgramMemory memory{*core};
  std::vector<std::uint8_t> out(kPageBytes);
  EXPECT_EQ(memory.read(TraceeAddr{kBase + kPageBytes / 2}, out), kPageBytes);
  EXPECT_EQ(memory.read_constant(TraceeAddr{kBase + kPageBytes / 2}, out), kPageBytes / 2);
  EXPECT_EQ(memory.read_constant(TraceeAddr{kBase + kPageBytes}, out), 0U);
  EXPECT_EQ(memory.read_constant(TraceeAddr{kBase}, out), kPageBytes);
}

}  // namespace
}  // namespace backtrail::tracee
