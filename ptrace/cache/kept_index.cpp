#include "ptrace/cache/kept_index.hpp"

#include <algorithm>

#include "arch/x86/translate/translator.hpp"

namespace backtrail::tracee::cache {
namespace {

const CodeModule* find(std::span<const CodeModule> modules, TraceeAddr address) {
  const auto found = std::find_if(modules.begin(), modules.end(), [=](const CodeModule& module) {
    return module.contains(address);
  });
  return found != modules.end() ? &*found : nullptr;
}

}  // namespace

KeptIndex::KeptIndex(const KeptModules& modules, const KeptView& older)
    : modules_{modules.present}, present_{modules.present.size()} {
  const auto add_free = [this](const CodeModule& more) {
    const bool taken = std::any_of(modules_.begin(), modules_.end(), [&](const CodeModule& module) {
      return module.overlaps(more.begin, more.end);
    });
    if (!taken) modules_.push_back(more);
  };
  for (auto gone = modules.gone.rbegin(); gone != modules.gone.rend(); ++gone) add_free(*gone);
  for (const CodeModule& old : older.modules) add_free(old);
  const auto take_over = [&](const auto& list, auto& into) {
    for (const auto& [head, offset] : list) {
      const CodeModule* was = find(older.modules, head);
      const CodeModule* now = module_at(head);
      if (was != nullptr && now != nullptr && was->is_part_of(*now)) into[head] = offset;
    }
  };
  take_over(older.bodies, bodies_);
  take_over(older.pads, pads_);
}

const CodeModule* KeptIndex::module_at(TraceeAddr address) const {
  return find(modules_, address);
}

bool KeptIndex::is_present(const CodeModule& module) const {
  return static_cast<std::size_t>(&module - modules_.data()) < present_;
}

void KeptIndex::add(const CodeBlock& block, const CodeRanges& ranges) {
  const CodeModule* module = module_at(block.head);
  if (module == nullptr || (!block.is_retired() && !is_present(*module))) return;
  const bool alone = std::all_of(ranges.begin(), ranges.end(), [=](const auto& range) {
    return module->begin <= range.first && range.second <= module->end;
  });
  if (!alone) return;
  if (block.is_landing()) {
    pads_[block.head] = block.offset + arch::x86::translate::kPadOffset;
  } else {
    bodies_[block.head] = block.offset;
  }
}

std::vector<KeptBody> KeptIndex::bodies() const {
  std::vector<KeptBody> list{bodies_.begin(), bodies_.end()};
  std::sort(list.begin(), list.end());
  return list;
}

std::vector<KeptPad> KeptIndex::pads() const {
  std::vector<KeptPad> list{pads_.begin(), pads_.end()};
  std::sort(list.begin(), list.end(),
            [](const KeptPad& a, const KeptPad& b) { return a.second < b.second; });
  return list;
}

bool KeptIndex::crosses(TraceeAddr head, TraceeAddr to) const {
  const CodeModule* from = module_at(head);
  if (from == nullptr || from->contains(to)) return false;
  const CodeModule* there = module_at(to);
  return there != nullptr && there->is_beside(*from) && bodies_.find(to) != bodies_.end();
}

std::optional<std::uint32_t> KeptIndex::linked(TraceeAddr head, TraceeAddr to) const {
  const CodeModule* from = module_at(head);
  if (from == nullptr || !from->contains(to)) return std::nullopt;
  const auto body = bodies_.find(to);
  return body != bodies_.end() ? std::optional{body->second} : std::nullopt;
}

}  // namespace backtrail::tracee::cache
