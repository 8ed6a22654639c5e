#include "ptrace/cache/program_file.hpp"

#include <string>
#include <utility>

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ptrace/cache/remote_calls.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kRedZoneBytes = 128;
constexpr std::uint64_t kStackAlignment = 16;

}  // namespace

Result<BorrowedName> BorrowedName::of(Thread& thread) {
  constexpr Bytes kName{'b', 'a', 'c', 'k', 't', 'r', 'a', 'i', 'l'};
  Process& process = thread.process();
  BT_TRY(const arch::x86::UserRegs regs, thread.user_regs());
  const TraceeAddr at{(regs.sp().value() - kRedZoneBytes - kName.size()) & ~(kStackAlignment - 1)};
  Bytes saved{};
  if (process.read_memory(at, saved) != saved.size() || !process.write_data(at, kName)) {
    return fail(TraceErrc::kUnreadable, "borrow stack", at.value());
  }
  return BorrowedName{process, at, saved};
}

BorrowedName::BorrowedName(BorrowedName&& other) noexcept
    : process_{std::exchange(other.process_, nullptr)}, at_{other.at_}, saved_{other.saved_} {}

BorrowedName::~BorrowedName() {
  if (process_ != nullptr) (void)process_->write_data(at_, saved_);
}

Result<ProgramFile> ProgramFile::make(Process& process, RemoteCalls& remote,
                                      const BorrowedName& name, std::uint64_t bytes) {
  // Kernels set to refuse executable memfds still let such a mapping be executed.
  BT_TRY(const std::uint64_t there,
         remote.call(SYS_memfd_create, {name.at().value(), MFD_CLOEXEC}));
  UniqueFd here{::open(ProcFs{}.path(process.pid(), "fd/" + std::to_string(there)).c_str(),
                       O_RDWR | O_CLOEXEC)};
  if (here && ::ftruncate(here.get(), static_cast<off_t>(bytes)) == 0) {
    return ProgramFile{std::move(here), there};
  }
  const auto failed = fail_errno("open the program's memfd");
  (void)remote.call(SYS_close, {there});
  return failed;
}

}  // namespace backtrail::tracee::cache
