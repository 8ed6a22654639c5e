// SPDX-License-Identifier: Apache-2.0
#include "server/record/warming.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "arch/base/file_bytes.hpp"
#include "ptrace/codecache/program/program_kind.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/launch.hpp"

namespace backtrail::server {
namespace {

using Clock = std::chrono::steady_clock;
using tracee::StopKind;
using tracee::ThreadId;

/// The dynamic linker needs milliseconds; a busy machine and a slow disk make it slower.
constexpr std::chrono::seconds kLimit{60};

/// Returns true if the program's dynamic linker can load it without running it: glibc's can. Others
/// would run it, among them replacements that have the same name.
bool can_be_listed(const std::string& file) {
  const tracee::UniqueFd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd) return false;
  const std::string linker = tracee::cache::kind_of_program(fd.get()).linker;
  const auto bytes = file_bytes(linker);
  if (linker.empty() || !bytes) return false;
  constexpr std::string_view kVariable = "TRACE_LOADED_OBJECTS";
  return std::search(bytes->begin(), bytes->end(), kVariable.begin(), kVariable.end()) !=
         bytes->end();
}

/// Returns the environment that makes glibc's dynamic linker exit before the program begins. The
/// variables that are left out would make it run functions of libraries or auditors.
std::vector<std::string> listing_environment() {
  constexpr std::array<std::string_view, 5> kLeftOut{
      "LD_TRACE_LOADED_OBJECTS=", "LD_DEBUG=", "LD_WARN=", "LD_BIND_NOW=", "LD_AUDIT="};
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {  // NOLINT: the C library's array
    const std::string_view text{*entry};
    const bool left_out = std::ranges::any_of(
        kLeftOut, [&](std::string_view name) { return text.starts_with(name); });
    if (!left_out) all.emplace_back(text);
  }
  all.emplace_back("LD_TRACE_LOADED_OBJECTS=1");
  return all;
}

/// Waits for the thread's next event; nullopt if there is none in time.
std::optional<tracee::StopEvent> next_event(tracee::Engine& engine, Clock::time_point until) {
  for (;;) {
    engine.pump(-1);
    if (auto event = engine.take_event()) return event;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd waited{engine.event_fd(), POLLIN, 0};
    ::poll(&waited, 1, static_cast<int>(left.count()));
  }
}

/// Runs the dynamic linker up to its exit.
Result<void> load_libraries(tracee::Engine& engine, ThreadId id) {
  const auto until = Clock::now() + kLimit;
  const std::pair<ThreadId, tracee::ResumeAction> order{id, {}};
  BT_CHECKED(engine.resume(std::span{&order, 1}));
  for (;;) {
    const auto event = next_event(engine, until);
    if (!event) return fail(TraceErrc::kBusy, "wait for the dynamic linker");
    if (event->kind == StopKind::kExiting) return {};
    if (event->kind == StopKind::kProcessExited || event->kind == StopKind::kProcessSignalled) {
      return fail(TraceErrc::kTraceeGone, "load libraries");
    }
    const std::pair<ThreadId, tracee::ResumeAction> again{event->thread, {.signal = event->signal}};
    BT_CHECKED(engine.resume(std::span{&again, 1}));
  }
}

}  // namespace

Result<Warmed> warm(const std::string& program,
                    const std::shared_ptr<tracee::cache::PersistentStore>& store,
                    std::uint64_t most_bytes) {
  tracee::LaunchSpec spec;
  spec.program = program;
  spec.through_shell = false;
  spec.transparent = true;
  BT_TRY(const std::string file, tracee::find_program(spec));
  Warmed warmed{.libraries = can_be_listed(file)};
  if (warmed.libraries) spec.environment = listing_environment();
  tracee::Engine engine{tracee::SourceKind::kCache};
  engine.set_reported({.exits = true});
  BT_TRY(const pid_t pid, engine.launch(spec));
  const ThreadId id{pid, pid};
  BT_CHECKED(engine.enable_trace(
      id, {.format = tracee::TraceFormat::kBts, .size_bytes = 0, .kept = store}));
  if (warmed.libraries) BT_CHECKED(load_libraries(engine, id));
  tracee::Thread* thread = engine.find(id);
  if (thread == nullptr || !thread->trace()) return fail(TraceErrc::kTraceeGone, "warm");
  BT_TRY(warmed.superblocks, thread->trace()->source().translate_ahead(*thread, most_bytes));
  // The end of the process puts them into the store.
  BT_CHECKED(engine.kill(pid));
  warmed.kept = !store->lost();
  return warmed;
}

}  // namespace backtrail::server
