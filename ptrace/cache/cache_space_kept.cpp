// Translations taken over from earlier processes of the same program, and left to later ones.

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "ptrace/cache/cache_space.hpp"
#include "ptrace/cache/fixed_addresses.hpp"
#include "ptrace/cache/section_search.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Fewer new superblocks than this share of the old ones are not worth keeping.
constexpr std::size_t kWorthKeepingShare = 64;
/// What is kept takes up room in the processes that take it over.
constexpr std::uint64_t kMostKeptBytes = 100ULL << 20;
/// Less than that may be code that nobody else has, made at run time, for the most part.
constexpr std::uint64_t kLittleBytes = 16ULL << 20;

/// Of `range`, but for the `known` parts of it, which are in order.
bool has_sections(pid_t pid, const ExecutableMap::Range& range,
                  const std::vector<CodeModule>& known) {
  if (range.inode == 0) return false;
  const auto file = file_behind(pid, range);
  if (!file) return true;
  constexpr std::uint64_t kSignatureBytes = 4;
  TraceeAddr at = range.begin;
  const auto has_before = [&](TraceeAddr end) {
    const std::uint64_t before = std::min<std::uint64_t>(at - range.begin, kSignatureBytes - 1);
    const std::uint64_t behind = std::min<std::uint64_t>(range.end - end, kSignatureBytes - 1);
    return at < end && file_has_abort_signature(*file, range.offset + (at - range.begin) - before,
                                                end - at + before + behind);
  };
  for (const CodeModule& part : known) {
    if (has_before(part.begin)) return true;
    at = part.end;
  }
  return has_before(range.end);
}

/// What is kept of it, in order.
std::vector<CodeModule> parts_of(const CodeModule& module, const KeptCode& kept) {
  std::vector<CodeModule> parts;
  for (const CodeModule& each : kept.parts().modules) {
    if (each.is_part_of(module)) parts.push_back(each);
  }
  std::sort(parts.begin(), parts.end(),
            [](const CodeModule& a, const CodeModule& b) { return a.begin < b.begin; });
  return parts;
}

bool is_in(std::span<const CodeModule> modules, const CodeModule& module) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](const CodeModule& each) { return module.is_part_of(each); });
}

}  // namespace

void CacheSpace::begin_keeping(std::shared_ptr<KeptStore> store) {
  if (!store) return;
  const auto exe = ProcFs{}.exe(process_.pid());
  const auto place = repeated_place(process_.pid());
  if (!exe || !place) return;
  store_ = std::move(store);
  key_ = fmt::format("{} {:x} {:x} {:x}", *exe, memory_->code().value(), memory_->table().value(),
                     *place);
  if (translate::faster_table_index() == translate::TableIndex::kMasked) key_ += " pext";
  if (inline_calls_ != inline_system_calls()) {
    std::string calls;
    for (const translate::CallCheck check : inline_calls_) calls += static_cast<char>(check);
    key_ += fmt::format(" {:x}", std::hash<std::string>{}(calls));
  }
  // Kept superblocks run along over breakpoints that are there already.
  if (!process_.breakpoints().empty() || !process_.debug_registers().empty()) return;
  if (auto kept = store_->find(key_)) code_->adopt(std::move(kept));
}

void CacheSpace::use_kept_modules() {
  if (!store_) return;
  const auto& adopted = code_->adopted();
  for (const ExecutableMap::Range& range : executable_.ranges()) {
    if (range.may_change || (range.inode == 0 && range.path != kVdso) || modules_.knows(range)) {
      continue;
    }
    auto module = identify(process_.pid(), range);
    const auto parts = module && adopted ? parts_of(*module, *adopted) : std::vector<CodeModule>{};
    // Which parts of such code may be translated is found out while it runs.
    if (module && has_sections(process_.pid(), range, parts)) module.reset();
    for (const CodeModule& displaced : modules_.add(range, module)) {
      code_->forget_retired(displaced.begin, displaced.end);
    }
    if (!module) continue;
    for (const CodeModule& part : parts) code_->activate(part.begin, part.end);
  }
}

void CacheSpace::retire(const std::vector<CodeModule>& modules) {
  for (const CodeModule& module : modules) code_->retire(module.begin, module.end);
}

std::size_t CacheSpace::usable_blocks(const KeptCode& code) const {
  const KeptModules known = modules_.kept();
  std::vector<translate::Branch> usable;
  for (const CodeModule& module : code.parts().modules) {
    if (is_in(known.present, module) || is_in(known.gone, module)) {
      usable.emplace_back(module.begin, module.end);
    }
  }
  std::sort(usable.begin(), usable.end());
  const auto& blocks = code.parts().blocks;
  return static_cast<std::size_t>(
      std::count_if(blocks.begin(), blocks.end(), [&](const CodeBlock& block) {
        const auto after = std::upper_bound(
            usable.begin(), usable.end(), block.head,
            [](TraceeAddr head, const translate::Branch& each) { return head < each.first; });
        return after != usable.begin() && block.head < std::prev(after)->second;
      }));
}

void CacheSpace::keep() {
  if (!store_) return;
  const auto& adopted = code_->adopted();
  const std::uint64_t used = code_->bytes_used();
  const std::size_t made = code_->blocks_of_files();
  const std::size_t old = adopted ? adopted->parts().blocks.size() : 0;
  const bool crowded = code_->cleared() != 0 || used > kMostKeptBytes;
  if (crowded || (used > kLittleBytes && 2 * (old + made) < old + code_->blocks())) {
    // Each would add what only it can use. Where most is of that kind, the next begins with
    // nothing.
    const bool forgets = adopted && (code_->cleared() != 0 || 2 * usable_blocks(*adopted) < old);
    if (forgets) store_->forget(key_);
    return;
  }
  if (made <= old / kWorthKeepingShare) return;
  // Of processes that run at the same time, who has the most to leave.
  const auto other = store_->find(key_);
  if (other && other != adopted &&
      usable_blocks(*other) >= made + (adopted ? usable_blocks(*adopted) : 0)) {
    return;
  }
  code_->keep(modules_.kept(), [this](const KeptPieces& code) { store_->put(key_, code); });
}

}  // namespace backtrail::tracee::cache
