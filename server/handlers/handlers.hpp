// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packet families. A source file with packets exports them as one table; the other files of this
/// folder help them.
///
/// A handler gets untrusted text. It returns the reply and keeps state only in the SessionContext.
/// It reaches processes and threads only through the Target's interfaces; of ptrace it uses plain
/// types and facts of this machine.

#include <span>

#include "server/session/packet_table.hpp"

namespace backtrail::server::handlers {

std::span<const PacketEntry> feature_packets();  ///< qSupported, QStartNoAckMode, `!`.
std::span<const PacketEntry>
thread_packets();  ///< H, T, qC, qfThreadInfo, qsThreadInfo, qAttached.
std::span<const PacketEntry> register_packets();    ///< g, G, p, P.
std::span<const PacketEntry> memory_packets();      ///< m, M, X, x, qSearch, qCRC.
std::span<const PacketEntry> breakpoint_packets();  ///< Z, z.
std::span<const PacketEntry>
resume_packets();  ///< `?`, vCont, c, s, C, S, bs, bc, vCtrlC, vStopped.
std::span<const PacketEntry> process_packets();  ///< vAttach, vKill, D, k.
std::span<const PacketEntry>
launch_packets();  ///< vRun, R, QEnvironment*, QSetWorkingDir, QStartupWithShell.
std::span<const PacketEntry>
setting_packets();  ///< QNonStop, QPassSignals, QCatchSyscalls, QThreadEvents, QThreadOptions.
std::span<const PacketEntry> symbol_packets();   ///< qSymbol, qGetTLSAddr, qShlibInfoAddr.
std::span<const PacketEntry> monitor_packets();  ///< qRcmd.
std::span<const PacketEntry> btrace_packets();   ///< Qbtrace, Qbtrace-conf.
std::span<const PacketEntry> qxfer_packets();    ///< qXfer.
std::span<const PacketEntry> vfile_packets();    ///< vFile.

}  // namespace backtrail::server::handlers
