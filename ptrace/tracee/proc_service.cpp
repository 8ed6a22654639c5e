// SPDX-License-Identifier: Apache-2.0
// Functions that libthread_db expects in the executable. Source: <proc_service.h>.
#include <bit>
#include <cstring>

// clang-format off
#include <proc_service.h>
// clang-format on

#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/proc_service_handle.hpp"

namespace {

using backtrail::TraceeAddr;
namespace arch = backtrail::arch;

TraceeAddr to_address(psaddr_t pointer) {
  return TraceeAddr{std::bit_cast<std::uint64_t>(pointer)};
}

// Indices in struct user_regs_struct (64-bit).
constexpr int kFsIndex = 25;
constexpr int kGsIndex = 26;

}  // namespace

namespace backtrail::tracee {
void keep_proc_service() noexcept {}
}  // namespace backtrail::tracee

// Exported from the executable (see CMakeLists.txt), where libthread_db finds them.
#pragma GCC visibility push(default)
extern "C" {

ps_err_e ps_pdread(ps_prochandle* process, psaddr_t address, void* out, size_t size) {
  const std::span bytes{static_cast<std::uint8_t*>(out), size};
  return process->host.memory->read(to_address(address), bytes) == size ? PS_OK : PS_BADADDR;
}

ps_err_e ps_pdwrite(ps_prochandle* process, psaddr_t address, const void* data, size_t size) {
  const std::span bytes{static_cast<const std::uint8_t*>(data), size};
  return process->host.memory->write(to_address(address), bytes) ? PS_OK : PS_BADADDR;
}

ps_err_e ps_ptread(ps_prochandle* process, psaddr_t address, void* out, size_t size) {
  return ps_pdread(process, address, out, size);
}

ps_err_e ps_ptwrite(ps_prochandle* process, psaddr_t address, const void* data, size_t size) {
  return ps_pdwrite(process, address, data, size);
}

ps_err_e ps_lgetregs(ps_prochandle* process, lwpid_t tid, prgregset_t out) {
  const auto regs = process->host.registers(tid);
  if (!regs) return PS_BADLID;
  static_assert(sizeof(prgregset_t) == sizeof(regs->words));
  std::memcpy(out, regs->words.data(), sizeof(prgregset_t));
  return PS_OK;
}

// Needed only to change registers, which the server never asks libthread_db to do.
ps_err_e ps_lsetregs(ps_prochandle* /*process*/, lwpid_t /*tid*/, const prgregset_t /*regs*/) {
  return PS_ERR;
}
ps_err_e ps_lgetfpregs(ps_prochandle* /*process*/, lwpid_t /*tid*/, prfpregset_t* /*out*/) {
  return PS_NOFREGS;
}
ps_err_e ps_lsetfpregs(ps_prochandle* /*process*/, lwpid_t /*tid*/, const prfpregset_t* /*regs*/) {
  return PS_NOFREGS;
}

pid_t ps_getpid(ps_prochandle* process) {
  return process->host.pid;
}

// For 64-bit programs `index` names FS or GS; for 32-bit programs it is a GDT entry.
ps_err_e ps_get_thread_area(ps_prochandle* process, lwpid_t tid, int index, psaddr_t* out) {
  if (process->host.isa == arch::Isa::kI386) {
    const auto base = backtrail::tracee::request::thread_area_base(tid, index);
    if (!base) return PS_ERR;
    *out = std::bit_cast<psaddr_t>(*base);
    return PS_OK;
  }
  if (index != kFsIndex && index != kGsIndex) return PS_BADADDR;
  const auto regs = process->host.registers(tid);
  if (!regs) return PS_BADLID;
  const auto base =
      (*regs)[index == kFsIndex ? arch::cpu::UserReg::kFsBase : arch::cpu::UserReg::kGsBase];
  *out = std::bit_cast<psaddr_t>(base);
  return PS_OK;
}

ps_err_e ps_pglobal_lookup(ps_prochandle* process, const char* /*object*/, const char* name,
                           psaddr_t* out) {
  const auto found = process->symbols.find(name);
  if (found == process->symbols.end()) return PS_NOSYM;
  *out = std::bit_cast<psaddr_t>(found->second.value());
  return PS_OK;
}

// No-ops: the caller of libthread_db has stopped the threads and resumes them itself.
ps_err_e ps_pstop(ps_prochandle* /*process*/) {
  return PS_OK;
}
ps_err_e ps_pcontinue(ps_prochandle* /*process*/) {
  return PS_OK;
}
ps_err_e ps_lstop(ps_prochandle* /*process*/, lwpid_t /*tid*/) {
  return PS_OK;
}
ps_err_e ps_lcontinue(ps_prochandle* /*process*/, lwpid_t /*tid*/) {
  return PS_OK;
}

}  // extern "C"
#pragma GCC visibility pop
