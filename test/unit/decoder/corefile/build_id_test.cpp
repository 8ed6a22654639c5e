// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/build_id.hpp"

#include <vector>

#include <elf.h>

#include <gtest/gtest.h>

#include "decoder/corefile/bytes.hpp"

namespace backtrail::decoder {
namespace {

template <typename T>
void put(ByteWriter& out, const T& object) {
  out.put({reinterpret_cast<const std::uint8_t*>(&object), sizeof object});
}

/// Returns an ELF file with one segment of two notes: another one, then the build id.
std::vector<std::uint8_t> elf_file(std::uint64_t notes_bytes = 48) {
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  Elf64_Phdr program{};
  program.p_type = PT_NOTE;
  program.p_offset = sizeof header + sizeof program;
  program.p_filesz = notes_bytes;
  ByteWriter out;
  put(out, header);
  put(out, program);
  for (const std::uint32_t type : {std::uint32_t{NT_GNU_ABI_TAG}, std::uint32_t{NT_GNU_BUILD_ID}}) {
    out.number(std::uint32_t{4});
    out.number(std::uint32_t{8});
    out.number(type);
    out.text("GNU");
    out.zeros(1);
    out.number(std::uint64_t{0x00efcdab78563412});
  }
  return {out.bytes().begin(), out.bytes().end()};
}

TEST(BuildId, IsFoundAmongNotes) {
  EXPECT_EQ(build_id_of(elf_file()), "12345678abcdef00");
}

TEST(BuildId, IsAbsentWhereNothingSaysIt) {
  EXPECT_EQ(build_id_of({}), "");
  EXPECT_EQ(build_id_of(elf_file(24)), "");
  EXPECT_EQ(build_id_of(elf_file(~0ULL)), "");
  auto cut = elf_file();
  for (; !cut.empty(); cut.pop_back()) (void)build_id_of(cut);
}

}  // namespace
}  // namespace backtrail::decoder
