// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/thread_db.hpp"

#include <algorithm>
#include <filesystem>

#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/link_map.hpp"
#include "ptrace/tracee/process_memory.hpp"
#include "test/integration/elf_symbols.hpp"
#include "test/integration/traced_program.hpp"

namespace backtrail::tracee {
namespace {

using arch::x86::UserReg;

MemoryReader reader_of(ProcessMemory& memory) {
  return [&memory](TraceeAddr at, std::span<std::uint8_t> out) { return memory.read(at, out); };
}

LinkMapList link_maps_of(const TracedProgram& program, ProcessMemory& memory) {
  const auto auxv = ProcFs{}.auxv(program.pid());
  const unsigned width = program.process().isa == arch::Isa::kAmd64 ? 8 : 4;
  return read_link_maps(reader_of(memory), auxv.value(), width).value();
}

TEST(LinkMapsOfAProcess, AreEmptyFirstAndFullLater) {
  for (const char* name : {"thread_local", "thread_local32"}) {
    if (!std::filesystem::exists(inferior_path(name))) continue;
    TracedProgram program{name};
    auto memory = ProcessMemory::open(program.pid());
    ASSERT_TRUE(memory);
    EXPECT_FALSE(link_maps_of(program, *memory).main);
    ASSERT_NE(program.run_to_trap(), 0);
    const LinkMapList list = link_maps_of(program, *memory);
    EXPECT_TRUE(list.main);
    EXPECT_TRUE(std::any_of(list.entries.begin(), list.entries.end(), [](const LinkMapEntry& e) {
      return e.name.find("libc.so.6") != std::string::npos && e.load_bias != TraceeAddr{};
    }));
  }
}

TEST(LinkMapsOfAProcess, AreAbsentFromAStaticProgram) {
  TracedProgram program{"plain_static"};
  auto memory = ProcessMemory::open(program.pid());
  ASSERT_TRUE(memory);
  const auto auxv = ProcFs{}.auxv(program.pid());
  EXPECT_TRUE(read_link_maps(reader_of(*memory), auxv.value(), 8).error().is(TraceErrc::kNotFound));
}

// A program stopped in its second thread, and its symbols as a debugger would look them up.
class ThreadDbTest : public testing::Test {
 protected:
  // Finds each wanted symbol in the libraries' files, like gdb.
  std::map<std::string, TraceeAddr> symbols(const TracedProgram& program) {
    std::map<std::string, TraceeAddr> out;
    const LinkMapList list = link_maps_of(program, *memory_);
    for (const LinkMapEntry& entry : list.entries)
      for (const auto& [name, value] : read_elf_symbols(entry.name))
        if (std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end())
          out.emplace(name, entry.load_bias + value);
    return out;
  }
  void open(TracedProgram& program) {
    tid_ = program.run_to_trap();
    ASSERT_NE(tid_, 0);
    memory_.emplace(ProcessMemory::open(program.pid()).value());
    wanted_ = ThreadDb::wanted_symbols();
    if (wanted_.empty()) GTEST_SKIP() << "no libthread_db on this machine";
    EXPECT_TRUE(wanted_.front().ends_with("nptl_version")) << wanted_.front();
    ThreadDbHost host;
    host.pid = program.pid();
    host.isa = program.process().isa;
    host.memory = &*memory_;
    host.registers = [](pid_t tid) { return request::read_user_regs(tid); };
    auto opened = ThreadDb::open(host, symbols(program));
    ASSERT_TRUE(opened) << opened.error().message();
    db_ = std::move(*opened);
  }
  // Uses the library and the offset of `per_thread`, which gdb finds in the program's symbols.
  void expect_thread_local(TracedProgram& program, const std::string& name) {
    const TraceeAddr link_map = *link_maps_of(program, *memory_).main;
    const auto own = read_elf_symbols(inferior_path(name));
    const std::uint64_t offset = own.at("per_thread");
    const auto address = db_->tls_address(tid_, offset, link_map);
    ASSERT_TRUE(address) << address.error().message();
    EXPECT_EQ(address->value(), request::peek_user_reg(tid_, UserReg::kRax).value());
    EXPECT_FALSE(db_->tls_address(1, offset, link_map));
  }

  std::optional<ProcessMemory> memory_;
  std::unique_ptr<ThreadDb> db_;
  std::vector<std::string> wanted_;
  pid_t tid_ = 0;
};

TEST_F(ThreadDbTest, FindsHandlesAndThreadLocals) {
  TracedProgram program{"thread_local"};
  open(program);
  if (!db_) return;
  // On x86-64 a pthread_t is the thread pointer.
  const auto handle = db_->handle(tid_);
  ASSERT_TRUE(handle);
  const std::uint64_t fs_base = request::peek_user_reg(tid_, UserReg::kFsBase).value();
  std::vector<std::uint8_t> expected(8);
  for (unsigned i = 0; i < 8; ++i) expected[i] = static_cast<std::uint8_t>(fs_base >> (8 * i));
  EXPECT_EQ(*handle, expected);
  expect_thread_local(program, "thread_local");
}

TEST_F(ThreadDbTest, Finds32BitThreadLocals) {
  if (!std::filesystem::exists(inferior_path("thread_local32")))
    GTEST_SKIP() << "no 32-bit programs here";
  TracedProgram program{"thread_local32"};
  open(program);
  if (!db_) return;
  EXPECT_TRUE(db_->handle(tid_));
  expect_thread_local(program, "thread_local32");
}

TEST_F(ThreadDbTest, IsAbsentWithoutALibraryOrSymbols) {
  TracedProgram program{"plain"};
  auto memory = ProcessMemory::open(program.pid());
  ASSERT_TRUE(memory);
  ThreadDbHost host;
  host.pid = program.pid();
  host.memory = &*memory;
  host.registers = [](pid_t tid) { return request::read_user_regs(tid); };
  EXPECT_TRUE(ThreadDb::wanted_symbols("/no/such/folder:$pdir:").empty());
  EXPECT_TRUE(ThreadDb::open(host, {}, "/no/such/folder").error().is(TraceErrc::kUnsupported));
  EXPECT_FALSE(ThreadDb::open(host, {}));
}

}  // namespace
}  // namespace backtrail::tracee
