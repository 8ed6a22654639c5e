// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/note_reader.hpp"

#include <string_view>

#include <elf.h>
#include <gtest/gtest.h>

#include "decoder/corefile/bytes.hpp"
#include "decoder/corefile/note_layout.hpp"

namespace backtrail::decoder {
namespace {

using Bytes = std::vector<std::uint8_t>;

void add_number(Bytes& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

void add_note(Bytes& out, std::string_view owner, std::uint32_t type, const Bytes& desc) {
  add_number(out, owner.size() + 1, 4);
  add_number(out, desc.size(), 4);
  add_number(out, type, 4);
  out.insert(out.end(), owner.begin(), owner.end());
  out.push_back(0);
  while (out.size() % 4 != 0) out.push_back(0);
  out.insert(out.end(), desc.begin(), desc.end());
  while (out.size() % 4 != 0) out.push_back(0);
}

Bytes status_of(std::uint8_t tid, std::uint8_t signal) {
  const PrstatusLayout& layout = prstatus_layout(arch::Isa::kAmd64);
  Bytes desc(layout.bytes);
  desc[kCursigOffset] = signal;
  desc[layout.pid] = tid;
  return desc;
}

NoteContents read(const Bytes& notes) {
  NoteContents out;
  NoteReader{arch::Isa::kAmd64, out}.read(notes);
  return out;
}

TEST(NoteReader, GivesEachThreadTheNotesAfterItsStatus) {
  Bytes notes;
  add_note(notes, "LINUX", NT_X86_XSTATE, {9});  // of no thread
  add_note(notes, "CORE", NT_PRSTATUS, status_of(7, 11));
  add_note(notes, "LINUX", NT_X86_XSTATE, {1});
  add_note(notes, "CORE", NT_PRSTATUS, status_of(8, 0));
  add_note(notes, "LINUX", NT_X86_XSTATE, {2});
  add_note(notes, "CORE", NT_PRSTATUS, status_of(7, 6));  // once more
  const NoteContents out = read(notes);
  ASSERT_EQ(out.threads.size(), 2U);
  EXPECT_EQ(out.threads[0].tid, 7U);
  EXPECT_EQ(out.threads[0].signal, 11);
  EXPECT_EQ(out.threads[0].xsave, Bytes{1});
  EXPECT_EQ(out.threads[1].tid, 8U);
  EXPECT_EQ(out.threads[1].xsave, Bytes{2});
}

TEST(NoteReader, ReadsMappings) {
  Bytes desc;
  for (const std::uint64_t word : {1U, 4096U, 0x1000U, 0x3000U, 2U}) add_number(desc, word, 8);
  for (const char c : std::string_view{"/lib/a\0", 7}) desc.push_back(static_cast<std::uint8_t>(c));
  Bytes notes;
  add_note(notes, "CORE", NT_FILE, desc);
  const NoteContents out = read(notes);
  ASSERT_EQ(out.mappings.size(), 1U);
  EXPECT_EQ(out.mappings[0].start, TraceeAddr{0x1000});
  EXPECT_EQ(out.mappings[0].end, TraceeAddr{0x3000});
  EXPECT_EQ(out.mappings[0].file_offset, 0x2000U);
  EXPECT_EQ(out.mappings[0].path, "/lib/a");
}

TEST(NoteReader, LeavesOutWhatIsCutOff) {
  Bytes notes;
  add_note(notes, "CORE", NT_PRSTATUS, status_of(7, 11));
  const std::size_t whole = notes.size();
  add_note(notes, "CORE", NT_PRSTATUS, status_of(8, 0));
  for (std::size_t size = 0; size <= notes.size(); ++size) {
    const NoteContents out =
        read(Bytes{notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(size)});
    const std::size_t expected = size == notes.size() ? 2 : size >= whole ? 1 : 0;
    EXPECT_EQ(out.threads.size(), expected) << size;
  }
}

TEST(NoteReader, KnowsANewerIndex) {
  Bytes desc;
  add_number(desc, kFormatVersion + 1, 4);
  desc.resize(kIndexHeaderBytes);
  Bytes notes;
  add_note(notes, kNoteOwner, kIndexNote, desc);
  EXPECT_TRUE(read(notes).newer_format);
}

}  // namespace
}  // namespace backtrail::decoder
