// Translations taken over from earlier processes of the same program, and left to later ones.

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <sys/stat.h>

#include "ptrace/cache/cache_space.hpp"
#include "ptrace/cache/section_search.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Fewer new superblocks than this share of the old ones are not worth keeping.
constexpr std::size_t kWorthKeepingShare = 64;
constexpr std::uint64_t kMostKeptBytes = 64ULL << 20;

/// The file behind the range; nothing where its content cannot be told from a file.
std::optional<CodeModule> identify(pid_t pid, const ExecutableMap::Range& range) {
  CodeModule module{.begin = range.begin, .end = range.end, .file_offset = range.offset};
  if (range.path == kVdso) return module;  // the kernel's, and its version is checked
  if (range.inode == 0 || !range.path.starts_with('/')) return std::nullopt;
  struct stat facts {};
  const std::string path = fmt::format("/proc/{}/root{}", pid, range.path);
  if (::stat(path.c_str(), &facts) != 0 || facts.st_ino != range.inode) return std::nullopt;
  module.device = facts.st_dev;
  module.inode = facts.st_ino;
  module.size = static_cast<std::uint64_t>(facts.st_size);
  module.changed_ns = static_cast<std::uint64_t>(facts.st_mtim.tv_sec) * 1'000'000'000U +
                      static_cast<std::uint64_t>(facts.st_mtim.tv_nsec);
  return module;
}

bool has_sections(pid_t pid, const ExecutableMap::Range& range) {
  if (range.inode == 0) return false;
  return file_has_abort_signature(fmt::format("/proc/{}/root{}", pid, range.path), range.offset,
                                  range.end - range.begin);
}

bool is_in(std::span<const CodeModule> modules, const CodeModule& module) {
  return std::find(modules.begin(), modules.end(), module) != modules.end();
}

}  // namespace

void CacheSpace::begin_keeping(std::shared_ptr<KeptStore> store) {
  if (!store) return;
  const auto exe = ProcFs{}.exe(process_.pid());
  if (!exe) return;
  store_ = std::move(store);
  key_ = fmt::format("{} {:x} {:x}", *exe, memory_->code().value(), memory_->table().value());
  // Kept superblocks run along over breakpoints that are there already.
  if (!process_.breakpoints().empty() || !process_.debug_registers().empty()) return;
  if (auto kept = store_->find(key_)) code_->adopt(std::move(kept));
}

void CacheSpace::use_kept_modules() {
  if (!store_) return;
  const auto& adopted = code_->adopted();
  for (const ExecutableMap::Range& range : executable_.ranges()) {
    const bool known = std::any_of(modules_.begin(), modules_.end(), [&](const CodeModule& module) {
      return module.begin == range.begin && module.end == range.end;
    });
    if (known || range.may_change || (range.inode == 0 && range.path != kVdso)) continue;
    const auto module = identify(process_.pid(), range);
    if (!module) {
      store_.reset();  // what is translated there means nothing to others
      return;
    }
    const bool kept = adopted && is_in(adopted->parts().modules, *module);
    // Which parts of such code may be translated is found out while it runs.
    if (!kept && has_sections(process_.pid(), range)) {
      store_.reset();
      return;
    }
    modules_.push_back(*module);
    if (kept) code_->activate(module->begin, module->end);
  }
}

void CacheSpace::keep() {
  if (!store_) return;
  const std::size_t old = code_->adopted() ? code_->adopted()->parts().blocks.size() : 0;
  const std::size_t made = code_->blocks_of_files();
  if (made <= old / kWorthKeepingShare || code_->bytes_used() > kMostKeptBytes) return;
  code_->keep(modules_, [this](const KeptPieces& code) { store_->put(key_, code); });
}

}  // namespace backtrail::tracee::cache
