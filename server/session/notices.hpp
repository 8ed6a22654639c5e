// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Lines on stderr that people, IDEs and gdb's own test suite wait for. The wording is gdbserver's
/// interface; each function prints its line at once.

#include <cstdint>
#include <span>
#include <string_view>

#include <sys/types.h>

namespace backtrail::server::notices {

/// "Process PROG created; pid = N", with the program's name as the user typed it.
void process_created(std::string_view program, pid_t pid);
/// "Cannot exec PROG: REASON", the system's words, and a line that says what is wrong. Older gdbs
/// show neither.
void cannot_exec(std::string_view program, std::string_view reason, std::string_view text);
/// "stdin/stdout redirected": the program does not share the protocol's streams.
void streams_redirected();
/// "Attached; pid = N"
void attached(pid_t pid);
/// "Listening on port N"
void listening_on_port(std::uint16_t port);
/// "Listening on WHERE", for listeners without a port.
void listening_at(std::string_view where);
/// "Remote debugging from host HOST, port N"
void debugging_from(std::string_view host, std::uint16_t port);
/// "Remote debugging using NAME", for stdio and devices.
void debugging_using(std::string_view name);
/// "Remote side has terminated connection.  NAME will reopen the connection."
void connection_ended(std::string_view server_name);
/// "Detaching from process N"
void detaching(pid_t pid);
/// "Killing all inferiors"
void killing_all();
/// "Killing process(es): N ..." and "Detaching process(es): N ...", each only if its list is not
/// empty.
void leaving(std::span<const pid_t> killed, std::span<const pid_t> detached);
/// A blank line and "Child exited with status N".
void child_exited(int status);
/// A blank line and "Child terminated with signal = 0xN (NAME)": Linux's number, gdb's name.
void child_signalled(unsigned signal, std::string_view name);
/// "Already debugging a process"
void already_debugging();
/// "GDBserver restarting"
void restarting();

}  // namespace backtrail::server::notices
