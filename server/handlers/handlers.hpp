#pragma once
/// @file
/// The packet families. Each source file of this folder serves one and exposes it as a table.
///
/// Handlers get a stranger's text. They answer, and leave run-time state in the SessionContext.
/// They know the Target's interfaces only, nothing of ptrace.

#include <span>

#include "server/session/packet_table.hpp"

namespace backtrail::server::handlers {

std::span<const PacketEntry> feature_packets();     ///< qSupported, QStartNoAckMode, `!`.
std::span<const PacketEntry> thread_packets();      ///< H, T, qC, qfThreadInfo, qAttached.
std::span<const PacketEntry> register_packets();    ///< g, G, p, P.
std::span<const PacketEntry> memory_packets();      ///< m, M, X, x, qSearch, qCRC.
std::span<const PacketEntry> breakpoint_packets();  ///< Z, z.
std::span<const PacketEntry> resume_packets();      ///< `?`, vCont, c, s, vStopped, vCtrlC.
std::span<const PacketEntry> process_packets();     ///< vAttach, vKill, D, k.
std::span<const PacketEntry> launch_packets();      ///< vRun, R, and how programs are started.
std::span<const PacketEntry> setting_packets();     ///< QNonStop, QPassSignals, QCatchSyscalls.
std::span<const PacketEntry> symbol_packets();      ///< qSymbol, qGetTLSAddr.
std::span<const PacketEntry> monitor_packets();     ///< qRcmd.
std::span<const PacketEntry> btrace_packets();      ///< Qbtrace, Qbtrace-conf.
std::span<const PacketEntry> qxfer_packets();       ///< qXfer.
std::span<const PacketEntry> vfile_packets();       ///< vFile.

}  // namespace backtrail::server::handlers
