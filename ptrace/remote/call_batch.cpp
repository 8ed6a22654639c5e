// SPDX-License-Identifier: Apache-2.0
#include "ptrace/remote/call_batch.hpp"

#include <array>
#include <utility>

#include <sys/syscall.h>

namespace backtrail::tracee {
namespace {

using arch::x86::translate::Gpr;

constexpr std::array kArguments{Gpr::kRdi, Gpr::kRsi, Gpr::kRdx, Gpr::kR10, Gpr::kR8, Gpr::kR9};

}  // namespace

CallBatch::CallBatch(TraceeAddr at) : begin_{at}, emit_{at} {
  // The calls preserve r14 and r15, which hold the ids.
  system_call(SYS_getpid);
  emit_.bytes({0x49, 0x89, 0xc6});  // mov r14, rax
  system_call(SYS_gettid);
  emit_.bytes({0x49, 0x89, 0xc7});  // mov r15, rax
}

void CallBatch::system_call(std::uint64_t number) {
  emit_.move(Gpr::kRax, number);
  emit_.bytes({0x0f, 0x05});
}

void CallBatch::call(std::uint64_t number, std::initializer_list<std::uint64_t> arguments,
                     std::uint64_t expected) {
  std::size_t index = 0;
  for (const std::uint64_t argument : arguments) emit_.move(kArguments[index++], argument);
  system_call(number);
  calls_.push_back({tracee::system_call(static_cast<std::uint32_t>(number), arguments), expected});
  emit_.move(Gpr::kR12, expected);
  emit_.bytes({0x49, 0x29, 0xc4, 0x0f, 0x85});  // sub r12, rax / jne
  failures_.push_back(emit_.open_rel32());
}

void CallBatch::store_ids(TraceeAddr process, TraceeAddr thread) {
  ids_ = {process, thread};
  emit_.move(Gpr::kRdx, process.value());
  emit_.bytes({0x44, 0x89, 0x32});  // mov [rdx], r14d
  emit_.move(Gpr::kRdx, thread.value());
  emit_.bytes({0x44, 0x89, 0x3a});  // mov [rdx], r15d
}

CallBatch::Code CallBatch::finish() {
  for (const std::uint32_t place : failures_) emit_.bind(place);
  emit_.bytes({0xcc});  // int3
  const TraceeAddr end = emit_.here();
  return {emit_.take(), begin_, end, std::move(calls_), ids_};
}

}  // namespace backtrail::tracee
