// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/process_memory.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

}  // namespace

Result<ProcessMemory> ProcessMemory::open(pid_t tid) {
  BT_TRY(const ProcStatus status, ProcFs{}.status(tid));
  return open(status.tgid, tid);
}

Result<ProcessMemory> ProcessMemory::open(pid_t pid, pid_t tid) {
  ProcessMemory memory{tid, pid, UniqueFd{}};
  if (auto opened = memory.choose_and_reopen(tid); !opened) return fail(opened.error());
  return memory;
}

Result<ProcessMemory> ProcessMemory::open_stopped(pid_t pid) {
  ProcessMemory memory{pid, pid, UniqueFd{}};
  if (auto opened = memory.reopen(pid); !opened) return fail(opened.error());
  return memory;
}

Result<void> ProcessMemory::choose_and_reopen(pid_t tid) {
  // A leader that ended before its other threads has no address space any more.
  if (const auto facts = ProcFs{}.stat(tid); facts && facts->zombie()) {
    BT_TRY(tid, ProcFs{}.live_task(pid_));
  }
  return reopen(tid);
}

Result<void> ProcessMemory::reopen(pid_t tid) {
  tid_ = tid;
  UniqueFd fd{::open(ProcFs{}.path(tid_, "mem").c_str(), O_RDWR | O_CLOEXEC)};
  if (!fd && (errno == ENOENT || errno == ESRCH))
    return fail(TraceErrc::kTraceeGone, "open /proc/TID/mem", static_cast<unsigned>(tid));
  if (!fd && (errno == EMFILE || errno == ENFILE)) return fail_errno("open /proc/TID/mem");
  if (!fd) log::ptrace().debug("tid={} op=open_mem errno={}", tid_, errno);
  mem_ = std::move(fd);
  gone_ = false;
  return {};
}

std::size_t ProcessMemory::read(TraceeAddr address, std::span<std::uint8_t> out) {
  if (gone_) return 0;
  errno = 0;
  const std::size_t done = read_file(address, out);
  // process_vm_readv could not read what the file refuses, but would block on pages that the
  // program itself supplies (userfaultfd(2)), perhaps by a thread that is stopped now. It is needed
  // if the file belongs to an old program's memory or cannot be read at all.
  if (done != 0 || gone_ || errno == EIO) return done;
  return read_vm(address, out);
}

std::size_t ProcessMemory::read_vm(TraceeAddr address, std::span<std::uint8_t> out) {
  const iovec local{out.data(), out.size()};
  const iovec remote{std::bit_cast<void*>(address.value()), out.size()};
  ssize_t got = ::process_vm_readv(tid_, &local, 1, &remote, 1, 0);
  if (got < 0 && errno == ESRCH && choose_live_thread())
    got = ::process_vm_readv(tid_, &local, 1, &remote, 1, 0);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

std::size_t ProcessMemory::read_file(TraceeAddr address, std::span<std::uint8_t> out) {
  if (!mem_) return 0;
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(mem_.get(), out.data() + done, out.size() - done,
                                std::bit_cast<off_t>(address.value() + done));
    if (got < 0 && errno == EINTR) continue;
    // End of file means that the address space has no users left (mem_rw() in fs/proc/base.c);
    // unmapped memory is an error.
    if (got == 0) {
      gone_ = !ProcFs{}.live_task(pid_);
      errno = 0;
    }
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

bool ProcessMemory::choose_live_thread() {
  const auto other = ProcFs{}.live_task(pid_);
  if (!other || *other == tid_) return false;
  tid_ = *other;
  return true;
}

Result<void> ProcessMemory::write(TraceeAddr address, std::span<const std::uint8_t> data) {
  std::size_t done = 0;
  while (mem_ && done < data.size()) {
    const ssize_t put = ::pwrite(mem_.get(), data.data() + done, data.size() - done,
                                 std::bit_cast<off_t>(address.value() + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
  }
  if (done == data.size()) return {};
  // The descriptor was refused, or the kernel makes /proc/TID/mem respect page protection.
  return poke(address + done, data.subspan(done));
}

Result<void> ProcessMemory::poke(TraceeAddr address, std::span<const std::uint8_t> data) {
  std::size_t done = 0;
  while (done < data.size()) {
    const std::uint64_t at = address.value() + done;
    const std::size_t skip = at % kWordBytes;
    const std::size_t count = std::min(kWordBytes - skip, data.size() - done);
    const TraceeAddr word_address{at - skip};
    auto word = request::peek_data(tid_, word_address);
    if (!word && choose_live_thread()) word = request::peek_data(tid_, word_address);
    if (word) {
      auto bytes = std::bit_cast<std::array<std::uint8_t, kWordBytes>>(*word);
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(done), count, bytes.begin() + skip);
      if (request::poke_data(tid_, word_address, std::bit_cast<std::uint64_t>(bytes))) {
        done += count;
        continue;
      }
    }
    // ESRCH here also means "not stopped", so blame the address unless the process is gone.
    if (!ProcFs{}.live_task(pid_))
      return fail(TraceErrc::kTraceeGone, "write memory", static_cast<unsigned>(pid_));
    return fail(TraceErrc::kUnreadable, "write memory", at);
  }
  return {};
}

}  // namespace backtrail::tracee
