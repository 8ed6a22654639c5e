// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/process.hpp"

#include <algorithm>
#include <utility>

#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/source/branch_source.hpp"

namespace backtrail::tracee {
namespace {

/// Under a hypervisor each CPUID instruction is slow.
const arch::x86::XsaveLayout& layout_of_host() {
  static const arch::x86::XsaveLayout layout = arch::x86::host_xsave_layout();
  return layout;
}

}  // namespace

Process::Process(pid_t pid, bool attached, ProcessMemory memory, ProcessObserver& observer)
    : pid_{pid}, observer_{observer}, attached_{attached}, view_{std::move(memory)} {
  observer_.on_begin(*this);
}

Process::~Process() {
  end_threads();
}

void Process::end_threads() {
  if (!std::exchange(ended_, true)) observer_.on_end(*this);
  threads_.clear();
}

Result<std::unique_ptr<Process>> Process::open(pid_t pid, pid_t tid, bool attached,
                                               ProcessObserver& observer) {
  BT_TRY(ProcessMemory memory, ProcessMemory::open(pid, tid));
  std::unique_ptr<Process> process{new Process{pid, attached, std::move(memory), observer}};
  BT_CHECKED(process->identify(tid));
  return process;
}

Result<std::unique_ptr<Process>> Process::open_child(pid_t pid, const Process& parent) {
  BT_TRY(ProcessMemory memory, ProcessMemory::open_stopped(pid));
  std::unique_ptr<Process> process{
      new Process{pid, parent.attached(), std::move(memory), parent.observer_}};
  process->view_.set_isa(parent.isa());
  return process;
}

Result<void> Process::identify(pid_t tid) {
  // The file decides, because a thread of a 64-bit program may briefly run 32-bit code.
  if (const auto isa = ProcFs{}.isa(tid)) {
    view_.set_isa(*isa);
  } else {
    BT_TRY(const std::uint64_t cs, request::peek_user_reg(tid, arch::cpu::UserReg::kCs));
    view_.set_isa(isa_from_code_segment(cs).value_or(arch::Isa::kAmd64));
  }
  return {};
}

// Built when somebody asks, and once: the description takes longer than a fork, and where no gdb
// is, nobody reads it.
const arch::cpu::GdbRegisterSet& Process::register_set() const {
  if (isa() == arch::Isa::kI386) {
    static const arch::cpu::GdbRegisterSet i386{arch::Isa::kI386, layout_of_host()};
    return i386;
  }
  static const arch::cpu::GdbRegisterSet amd64{arch::Isa::kAmd64, layout_of_host()};
  return amd64;
}

Result<void> Process::write_memory(TraceeAddr address, std::span<const std::uint8_t> data) {
  for (const auto& thread : threads_) {
    if (thread->source() != nullptr) {
      thread->source()->on_code_written(address, address + data.size());
    }
  }
  view_.insns().invalidate(address, address + data.size());
  return write_data(address, data);
}

Result<void> Process::insert_debug(TraceeAddr address, std::uint64_t length,
                                   arch::cpu::DebugAccess access) {
  BT_CHECKED(debug_.registers.insert(address, length, access));
  ++debug_.generation;
  return {};
}

Result<void> Process::remove_debug(TraceeAddr address, std::uint64_t length,
                                   arch::cpu::DebugAccess access) {
  BT_CHECKED(debug_.registers.remove(address, length, access));
  ++debug_.generation;
  return {};
}

void Process::clear_debug() {
  debug_.registers = {};
  if (debug_.generation != 0) ++debug_.generation;
}

Thread* Process::find(pid_t tid) {
  const auto found = std::find_if(threads_.begin(), threads_.end(),
                                  [=](const auto& thread) { return thread->tid() == tid; });
  return found == threads_.end() ? nullptr : found->get();
}

Thread& Process::add_thread(pid_t tid) {
  ++threads_ever_;
  return *threads_.emplace_back(std::make_unique<Thread>(*this, tid));
}

void Process::remove_thread(pid_t tid) {
  own_affinity.end_call(tid);
  std::erase_if(threads_, [=](const auto& thread) { return thread->tid() == tid; });
}

Thread* Process::any_stopped() {
  const auto found = std::find_if(threads_.begin(), threads_.end(),
                                  [](const auto& thread) { return thread->stopped(); });
  return found == threads_.end() ? nullptr : found->get();
}

Result<void> Process::renew_memory() {
  trap_action = trap_action.inherited();
  placement = {};
  own_affinity.forget_calls();
  BT_CHECKED(view_.reopen(pid_));
  return identify(pid_);
}

void Process::become_new_image(Thread& survivor) {
  std::erase_if(threads_, [&](const auto& thread) { return thread.get() != &survivor; });
  survivor.rename(pid_);
  survivor.set_group(pid_);
  threads_ever_ = 1;
  view_.forget_program();
  debug_ = {};
  restartable = {};
  lifted_for_vfork = false;
  asked.not_to_be_dumped = false;
  observer_.on_new_image(*this);
}

void Process::inherit_from(Process& parent) {
  view_.inherit_from(parent.view_);
  restartable = parent.restartable;
  filters = parent.filters;
  filters_checked = parent.filters_checked;
  placement = parent.placement;
  // A thread of the parent may be about to change the action.
  if (parent.threads_.size() == 1) trap_action = parent.trap_action.inherited();
  address_limit = parent.address_limit;
  reports_tracing = parent.reports_tracing;
  asked.not_to_be_dumped = parent.asked.not_to_be_dumped;
  observer_.on_inherit(parent, *this);
}

}  // namespace backtrail::tracee
