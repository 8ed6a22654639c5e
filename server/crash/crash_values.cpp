// SPDX-License-Identifier: Apache-2.0
#include "server/crash/crash_values.hpp"

#include <algorithm>
#include <optional>

#include "arch/cpu/registers.hpp"
#include "arch/cpu/values.hpp"
#include "server/target/core_target.hpp"

namespace backtrail::server {
namespace {

namespace values = arch::cpu::values;
using decoder::FrameState;

/// A thread's innermost frame where the thread ended.
class EndState final : public FrameState {
 public:
  EndState(const decoder::CoreThread& thread, tracee::ProgramMemory& memory,
           const RegisterSlots& slots)
      : raw_{thread.user, thread.xsave}, memory_{memory}, slots_{slots} {}

  Known reg(unsigned number) override {
    if (number == kPc) return values::known(raw_.user.pc().value());
    const auto slot = dwarf_slot(number);
    return slot ? slots_.read(*slot, raw_) : Known{};
  }
  Known lane(unsigned number, unsigned lane) override {
    return slots_.read(values::vector_slot(number, lane), raw_);
  }
  std::size_t memory(TraceeAddr address, std::span<std::uint8_t> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      const auto rest = out.subspan(done);
      std::size_t more = memory_.read_persistent(address + done, rest);
      // A file has the first contents of its mapping; they may have changed where it is writable.
      if (more == 0) more = memory_.read_constant(address + done, rest);
      if (more == 0) break;
      done += more;
    }
    return done;
  }

 private:
  arch::cpu::RawRegisters raw_;
  tracee::ProgramMemory& memory_;
  const RegisterSlots& slots_;
};

/// A thread's innermost frame at a place in its past.
class PastState final : public FrameState {
 public:
  PastState(ProgramPast& past, ThreadId thread, const decoder::PastPosition& place)
      : past_{past}, thread_{thread}, place_{place} {}

  Known reg(unsigned number) override {
    if (number == kPc) return values::known(place_.pc.value());
    const auto slot = dwarf_slot(number);
    return slot ? past_.read_slot(thread_, place_, *slot) : Known{};
  }
  Known lane(unsigned number, unsigned lane) override {
    return past_.read_slot(thread_, place_, values::vector_slot(number, lane));
  }
  std::size_t memory(TraceeAddr address, std::span<std::uint8_t> out) override {
    return past_.read_at(thread_, place_, address, out);
  }

 private:
  ProgramPast& past_;
  ThreadId thread_;
  decoder::PastPosition place_;
};

}  // namespace

CrashValues::CrashValues(const decoder::CoreFile& core, tracee::ProgramMemory& memory)
    : core_{core},
      memory_{memory},
      registers_{core_registers(core)},
      traces_{core, memory},
      end_{core, memory, traces_, registers_},
      past_{end_, no_stops_} {}

std::unique_ptr<FrameState> CrashValues::at_end(std::uint32_t tid) {
  const auto found = std::ranges::find(core_.threads(), tid, &decoder::CoreThread::tid);
  if (found == core_.threads().end() || core_.isa() != arch::Isa::kAmd64) return nullptr;
  return std::make_unique<EndState>(*found, memory_, slots_);
}

PastValues* CrashValues::of(std::uint32_t tid) {
  return past_.values_of({static_cast<pid_t>(core_.process().pid), static_cast<pid_t>(tid)});
}

std::unique_ptr<FrameState> CrashValues::in_past(std::uint32_t tid, const Past& place) {
  if (core_.isa() != arch::Isa::kAmd64) return nullptr;
  const ThreadId thread{static_cast<pid_t>(core_.process().pid), static_cast<pid_t>(tid)};
  const auto found = past_.find_after(thread, place.newer, place.pc, place.ahead);
  return found ? std::make_unique<PastState>(past_, thread, *found) : nullptr;
}

std::unique_ptr<FrameState> CrashValues::after_return(std::uint32_t tid, std::uint64_t newer) {
  if (core_.isa() != arch::Isa::kAmd64) return nullptr;
  const ThreadId thread{static_cast<pid_t>(core_.process().pid), static_cast<pid_t>(tid)};
  const auto found = past_.find_return(thread, newer);
  return found ? std::make_unique<PastState>(past_, thread, *found) : nullptr;
}

}  // namespace backtrail::server
