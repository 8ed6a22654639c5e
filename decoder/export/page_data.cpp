// SPDX-License-Identifier: Apache-2.0
#include "decoder/export/page_data.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <zlib.h>

#include "arch/disassemble.hpp"
#include "decoder/trace/block_walker.hpp"

namespace backtrail::decoder {
namespace {

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      word = word << 8U | (i + k < bytes.size() ? bytes[i + k] : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool there = i + k <= bytes.size();
      out += there ? kDigits[word >> (18U - 6U * k) & 63U] : '=';
    }
  }
  return out;
}

}  // namespace

void NumberWriter::put(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) bytes_.push_back(static_cast<std::uint8_t>(value | 0x80U));
  bytes_.push_back(static_cast<std::uint8_t>(value));
}

void NumberWriter::put_signed(std::int64_t value) {
  const auto folded = static_cast<std::uint64_t>(value < 0 ? -(value + 1) : value);
  put(folded << 1U | (value < 0 ? 1U : 0U));
}

std::size_t PageCode::HashStretch::operator()(const Stretch& stretch) const {
  const std::uint64_t mixed = stretch.begin.value() * 0x9e3779b97f4a7c15U ^
                              (stretch.last.value() << 1U | (stretch.with_last ? 1U : 0U));
  return mixed * 0xff51afd7ed558ccdU >> 8U;
}

std::uint32_t PageCode::line_number(const SourceLine& at, TraceeAddr address) {
  if (at.file == 0 || at.line == 0) return 0;
  const auto [file, new_file] =
      file_numbers_.try_emplace(at.file, static_cast<std::uint32_t>(files_.size()));
  if (new_file) files_.push_back({at.file, address});
  const std::pair key{file->second, at.line};
  const auto [place, is_new] =
      line_ids_.try_emplace(key, static_cast<std::uint32_t>(lines_.size()));
  if (is_new) lines_.push_back(key);
  return place->second;
}

/// Returns the number of the innermost scope inlined at an address.
std::uint32_t PageCode::scope(TraceeAddr address) {
  const std::vector<CodeFrame>& frames = symbols_.frames_at(address);
  std::uint32_t around = 0;
  for (std::size_t i = frames.size() - 1; i-- > 0;) {
    if (frames[i].name == 0) continue;
    const Scope scope{around, names_.of_text(symbols_.text(frames[i].name)),
                      line_number(frames[i + 1].line, address)};
    const auto [place, is_new] =
        scope_ids_.try_emplace(scope, static_cast<std::uint32_t>(scopes_.size()));
    if (is_new) scopes_.push_back(scope);
    around = place->second;
  }
  return around;
}

std::uint32_t PageCode::block(const Stretch& stretch, CodeHistory* past, std::uint64_t record) {
  const auto [begin, last, with_last, is_newest] = stretch;
  // Code that was the same as at the end stays so.
  const auto known = ids_.find(stretch);
  if (known != ids_.end() && known->second.past == past && record >= known->second.since) {
    return known->second.id;
  }
  const bool changes =
      past != nullptr && !past->is_as_at_end(record, begin, last + insns_.at(last).length);
  if (!changes && known != ids_.end()) {
    known->second.past = past;
    known->second.since = record;
    return known->second.id;
  }
  const auto executed = [&](TraceeAddr pc) { return changes ? past->at(record, pc) : nullptr; };
  const auto facts = [&](TraceeAddr pc) -> const arch::InsnFacts& {
    return executed_facts(changes ? past : nullptr, insns_, record, pc);
  };
  std::vector<std::uint32_t> instructions;
  const auto add = [&](TraceeAddr pc) { instructions.push_back(instruction(pc, executed(pc))); };
  const Walk walk =
      walk_insns(facts, begin, last, [&](TraceeAddr pc, const arch::InsnFacts&) { add(pc); });
  if (with_last && walk.reached()) {
    if (is_newest) {
      if (insns_.at(last).known()) instructions.push_back(instruction(last, nullptr));
    } else if (facts(last).known()) {
      add(last);
    }
  }
  if (!changes) {
    const std::uint32_t id = instructions.empty() ? 0 : add_block(instructions);
    ids_.try_emplace(stretch, Known{id, past, record});
    return id;
  }
  if (instructions.empty()) return 0;
  const auto [place, is_new] = changed_ids_.try_emplace(instructions, 0U);
  if (is_new) place->second = add_block(instructions);
  return place->second;
}

std::uint32_t PageCode::add_block(const std::vector<std::uint32_t>& instructions) {
  Block block;
  for (const std::uint32_t number : instructions) {
    const TraceeAddr at = instructions_[number].address;
    block.instructions.push_back(number);
    const std::uint32_t id = line(at);
    if (id != 0 && (block.lines.empty() || block.lines.back() != id)) block.lines.push_back(id);
    const std::uint32_t scope = instructions_[block.instructions.back()].scope;
    if (!block.scopes.empty() && block.scopes.back().scope == scope) continue;
    block.scopes.push_back({scope, block.lines.empty() ? 0 : block.lines.size() - 1});
  }
  if (block.scopes.size() == 1 && block.scopes.front().scope == 0) block.scopes.clear();
  blocks_.push_back(std::move(block));
  return static_cast<std::uint32_t>(blocks_.size() - 1);
}

std::vector<PageCode::LineBegin> PageCode::line_begins(std::uint32_t block) {
  std::vector<LineBegin> out;
  std::uint32_t before = 0;
  const std::vector<std::uint32_t>& instructions = blocks_[block].instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const TraceeAddr at = instructions_[instructions[i]].address;
    const std::uint32_t id = line(at);
    if (id == 0 || id == before) continue;
    out.push_back({at, i});
    before = id;
  }
  return out;
}

std::uint32_t PageCode::instruction(TraceeAddr address, const ExecutedInsn* executed) {
  const auto next = static_cast<std::uint32_t>(instructions_.size());
  std::uint32_t* known = nullptr;
  if (executed == nullptr) {
    const auto [place, is_new] = instruction_ids_.try_emplace(address, next);
    if (!is_new) return place->second;
    known = &place->second;
  }
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t count = executed != nullptr ? 0 : insns_.code().read_code(address, bytes);
  const std::uint32_t text = text_number(
      arch::disassemble(insns_.code().isa(), address,
                        executed != nullptr ? executed->view() : std::span{bytes}.first(count)));
  if (executed != nullptr) {
    const auto [place, is_new] = executed_ids_.try_emplace({address, text}, next);
    if (!is_new) return place->second;
    known = &place->second;
  }
  const std::uint32_t number = *known;
  instructions_.push_back({address, text, scope(address)});
  return number;
}

std::uint32_t PageCode::text_number(const std::string& text) {
  const auto [known, is_new] =
      text_ids_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(text);
  return known->second;
}

std::vector<std::uint8_t> PageCode::write() const {
  NumberWriter out;
  out.put(lines_.size());
  for (const auto& [file, number] : lines_) {
    out.put(file);
    out.put(number);
  }
  out.put(scopes_.size());
  for (const Scope& scope : scopes_) {
    out.put(scope.around);
    out.put(scope.name);
    out.put(scope.line);
  }
  out.put(blocks_.size());
  for (const Block& block : blocks_) {
    out.put(block.lines.size());
    for (const std::uint32_t id : block.lines) out.put(id);
    out.put(block.scopes.size());
    for (const ScopeBegin& begin : block.scopes) {
      out.put(begin.scope);
      out.put(begin.line);
    }
  }
  return out.bytes();
}

std::vector<std::uint8_t> PageCode::write_instructions() const {
  NumberWriter out;
  out.put(instructions_.size());
  TraceeAddr before;
  for (const Instruction& instruction : instructions_) {
    out.put_signed(static_cast<std::int64_t>(instruction.address - before));
    out.put(instruction.text);
    before = instruction.address;
  }
  for (const Block& block : blocks_) {
    out.put(block.instructions.size());
    std::int64_t last = 0;
    for (const std::uint32_t id : block.instructions) {
      out.put_signed(std::int64_t{id} - last);
      last = id;
    }
  }
  return out.bytes();
}

std::vector<std::uint8_t> page_calls(std::span<const Call> calls, CallNames& names,
                                     PageCode& code) {
  NumberWriter out;
  out.put(calls.size());
  std::uint64_t begin = 0;
  std::int64_t depth = 0;
  for (const Call& call : calls) {
    constexpr unsigned kBeginBits = 3;
    constexpr std::uint64_t kFromStack = 5;
    const std::uint64_t how = call.from_stack ? kFromStack : static_cast<std::uint64_t>(call.begin);
    out.put(call.begin_position - begin);
    out.put_signed(std::int64_t{call.depth} - depth);
    out.put(call.end_position - call.begin_position);
    out.put(names.of(call));
    out.put(how | static_cast<std::uint64_t>(call.end) << kBeginBits);
    out.put(call.site == TraceeAddr{} ? 0 : code.line(call.site));
    begin = call.begin_position;
    depth = call.depth;
  }
  return out.bytes();
}

std::string packed_base64(std::span<const std::uint8_t> bytes) {
  uLongf size = compressBound(bytes.size());
  std::vector<std::uint8_t> packed(size);
  if (compress2(packed.data(), &size, bytes.data(), bytes.size(), Z_DEFAULT_COMPRESSION) != Z_OK) {
    return {};
  }
  return base64(std::span{packed}.first(size));
}

}  // namespace backtrail::decoder
