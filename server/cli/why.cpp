// SPDX-License-Identifier: Apache-2.0
#include "server/cli/why.hpp"

#include <fmt/format.h>

#include "decoder/corefile/trace_archive.hpp"
#include "decoder/symbols/core_modules.hpp"
#include "ptrace/core/program_memory.hpp"
#include "server/cli/cli_words.hpp"
#include "server/crash/crash_source.hpp"
#include "server/crash/value_origin.hpp"

namespace backtrail::server {

int run_why(const WhyOptions& options) {
  const auto crash = CrashSource::open(options.file, options.roots);
  if (!crash) return fail_with(crash.error());
  const decoder::CoreFile& core = crash->core();
  const decoder::TraceArchive archive{core};
  tracee::ProgramMemory memory{core, crash->roots()};
  const auto symbols = decoder::make_elf_symbols(
      decoder::core_modules(core, [&](const std::string& path) { return memory.find_file(path); }),
      {crash->roots(), archive.names()});
  const auto text = value_origin(core, memory, *symbols, options.expression);
  if (!text) return fail_with(text.error());
  fmt::print("{}", *text);
  return 0;
}

}  // namespace backtrail::server
