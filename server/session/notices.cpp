// SPDX-License-Identifier: Apache-2.0
#include "server/session/notices.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace backtrail::server::notices {
namespace {

/// Writes in one call, so that lines of the debugged program do not fall in between.
void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

void process_created(std::string_view program, pid_t pid) {
  print(fmt::format("Process {} created; pid = {}\n", program, pid));
}

void cannot_exec(std::string_view program, std::string_view reason, std::string_view text) {
  print(fmt::format("Cannot exec {}: {}\n{}\n", program, reason, text));
}

void streams_redirected() {
  print("stdin/stdout redirected\n");
}

void attached(pid_t pid) {
  print(fmt::format("Attached; pid = {}\n", pid));
}

void listening_on_port(std::uint16_t port) {
  print(fmt::format("Listening on port {}\n", port));
}

void listening_at(std::string_view where) {
  print(fmt::format("Listening on {}\n", where));
}

void debugging_from(std::string_view host, std::uint16_t port) {
  print(fmt::format("Remote debugging from host {}, port {}\n", host, port));
}

void debugging_using(std::string_view name) {
  print(fmt::format("Remote debugging using {}\n", name));
}

void connection_ended(std::string_view server_name) {
  print(fmt::format("Remote side has terminated connection.  {} will reopen the connection.\n",
                    server_name));
}

void detaching(pid_t pid) {
  print(fmt::format("Detaching from process {}\n", pid));
}

void killing_all() {
  print("Killing all inferiors\n");
}

void leaving(std::span<const pid_t> killed, std::span<const pid_t> detached) {
  if (!killed.empty()) print(fmt::format("Killing process(es): {}\n", fmt::join(killed, " ")));
  if (!detached.empty()) {
    print(fmt::format("Detaching process(es): {}\n", fmt::join(detached, " ")));
  }
}

void child_exited(int status) {
  print(fmt::format("\nChild exited with status {}\n", status));
}

void child_signalled(unsigned signal, std::string_view name) {
  print(fmt::format("\nChild terminated with signal = {:#x} ({})\n", signal, name));
}

void already_debugging() {
  print("Already debugging a process\n");
}

void restarting() {
  print("GDBserver restarting\n");
}

}  // namespace backtrail::server::notices
