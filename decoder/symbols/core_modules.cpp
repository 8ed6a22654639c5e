// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/core_modules.hpp"

#include <map>

#include <elf.h>

namespace backtrail::decoder {
namespace {

bool has_code(const CoreFile& core, const LoadedModule& module) {
  for (const LoadedModule::Piece& piece : module.pieces) {
    const CoreSegment* segment = core.segment_at(piece.start);
    if (segment != nullptr && (segment->flags & PF_X) != 0) return true;
  }
  return false;
}

}  // namespace

std::vector<LoadedModule> core_modules(const CoreFile& core, const FindFile& find) {
  std::map<std::string, LoadedModule> by_path;
  for (const CoreMapping& mapping : core.mappings()) {
    const auto [place, is_new] = by_path.try_emplace(mapping.path);
    if (is_new) place->second.path = mapping.path;
    place->second.pieces.push_back({mapping.start, mapping.end, mapping.file_offset});
  }
  std::vector<LoadedModule> out;
  for (auto& [path, module] : by_path) {
    if (!has_code(core, module)) continue;
    module.found = find(path).value_or("");
    out.push_back(std::move(module));
  }
  const TraceeAddr vdso{core.auxv_value(AT_SYSINFO_EHDR)};
  constexpr std::size_t kMostVdsoBytes = 1U << 20U;
  const CoreSegment* segment = vdso == TraceeAddr{} ? nullptr : core.segment_at(vdso);
  if (segment != nullptr && segment->start == vdso && !segment->bytes.empty() &&
      segment->bytes.size() <= kMostVdsoBytes) {
    out.push_back({"[vdso]",
                   "",
                   {segment->bytes.begin(), segment->bytes.end()},
                   {{segment->start, segment->start + segment->bytes.size(), 0}}});
  }
  return out;
}

}  // namespace backtrail::decoder
