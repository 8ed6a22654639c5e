#pragma once
/// @file
/// The frame the kernel lays down when it delivers a signal.

#include <optional>

#include "arch/base/address.hpp"

namespace backtrail::tracee {

class Process;
class Thread;

/// Where the handler that `thread` has just entered will return to, if that is one of the two
/// candidates; nothing when the frame says something else or cannot be read.
/// Source: arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h.
[[nodiscard]] std::optional<TraceeAddr> interrupted_pc(Thread& thread, Process& process,
                                                       TraceeAddr first, TraceeAddr second);

}  // namespace backtrail::tracee
