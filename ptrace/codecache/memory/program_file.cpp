// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/program_file.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/cpu/program_abi.hpp"
#include "ptrace/os/file_facts.hpp"
#include "ptrace/os/file_size.hpp"
#include "ptrace/os/id_namespace.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::kRedZoneBytes;
using arch::cpu::kStackAlignment;

/// As /proc/PID/maps shows it.
constexpr const char* kName = "backtrail";

/// Sets the size for good: memory that is mapped beyond the end of its file raises SIGBUS.
Result<void> set_last_size(int fd, std::uint64_t bytes) {
  BT_CHECKED(set_memory_file_size(fd, bytes));
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail_errno("fcntl(F_ADD_SEALS)");
  }
  return {};
}

bool is_file_of(int fd, const std::string& path) {
  struct stat ours {};
  struct stat theirs {};
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &theirs) == 0 &&
         is_same_file(ours, theirs);
}

}  // namespace

Result<UniqueFd> make_memfd(std::uint64_t bytes) {
  UniqueFd file{::memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file) return fail_errno("memfd_create");
  BT_CHECKED(set_last_size(file.get(), bytes));
  return file;
}

std::uint64_t inode_of(int fd) {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 ? facts.st_ino : 0;
}

Result<BorrowedName> BorrowedName::of(Thread& thread) {
  Process& process = thread.process();
  BT_TRY(const arch::cpu::UserRegs regs, thread.user_regs());
  const TraceeAddr at{(regs.sp().value() - kRedZoneBytes - kBytes) & ~(kStackAlignment - 1)};
  Bytes saved{};
  if (process.read_memory(at, saved) != saved.size() || !process.write_data(at, saved)) {
    return fail(TraceErrc::kUnreadable, "borrow stack", at.value());
  }
  return BorrowedName{process, at, saved};
}

Result<void> BorrowedName::set(std::string_view name) const {
  Bytes bytes{};
  std::copy_n(name.begin(), std::min(name.size(), bytes.size() - 1), bytes.begin());
  return process_->write_data(at_, bytes);
}

BorrowedName::BorrowedName(BorrowedName&& other) noexcept
    : process_{std::exchange(other.process_, nullptr)}, at_{other.at_}, saved_{other.saved_} {}

BorrowedName::~BorrowedName() {
  if (process_ != nullptr) (void)process_->write_data(at_, saved_);
}

Result<ProgramFile> ProgramFile::make(Process& process, RemoteCalls& remote,
                                      const BorrowedName& name, std::uint64_t bytes) {
  // Kernels that refuse executable memfds still allow this mapping to be executed.
  BT_CHECKED(name.set(kName));
  const auto made =
      remote.stepped_call(SYS_memfd_create, {name.at().value(), MFD_CLOEXEC | MFD_ALLOW_SEALING});
  if (!made && !process.filters.empty()) return make_here(process, remote, name, bytes);
  BT_TRY(const std::uint64_t there, made);
  UniqueFd here{::open(ProcFs{}.path(process.pid(), "fd/" + std::to_string(there)).c_str(),
                       O_RDWR | O_CLOEXEC)};
  const auto sized =
      here ? set_last_size(here.get(), bytes) : fail_errno("open the program's memfd");
  if (sized) return ProgramFile{std::move(here), there};
  (void)remote.call(SYS_close, {there});
  return fail(sized.error());
}

Result<ProgramFile> ProgramFile::make_here(Process& process, RemoteCalls& remote,
                                           const BorrowedName& name, std::uint64_t bytes) {
  BT_TRY(UniqueFd here, make_memfd(bytes));
  BT_TRY(const std::uint64_t there, open_in(process, remote, name, here.get()));
  return ProgramFile{std::move(here), there};
}

Result<std::uint64_t> ProgramFile::open_in(Process& process, RemoteCalls& remote,
                                           const BorrowedName& name, int fd) {
  if (!shares_our_ids(process.pid())) {
    return fail(TraceErrc::kUnsupported, "open the server's file");
  }
  // A process that may inspect the server may open the server's files.
  BT_CHECKED(name.set(fmt::format("/proc/{}/fd/{}", ::getpid(), fd)));
  constexpr auto kAnyFolder = static_cast<std::uint64_t>(AT_FDCWD);
  BT_TRY(const std::uint64_t there,
         remote.stepped_call(SYS_openat,
                             {kAnyFolder, name.at().value(), O_RDWR | O_CLOEXEC | O_NOCTTY}));
  // Another /proc may be mounted there.
  if (is_file_of(fd, ProcFs{}.path(process.pid(), "fd/" + std::to_string(there)))) return there;
  (void)remote.call(SYS_close, {there});
  return fail(TraceErrc::kUnsupported, "open the server's file");
}

}  // namespace backtrail::tracee::cache
