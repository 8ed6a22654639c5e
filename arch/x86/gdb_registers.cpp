// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/gdb_registers.hpp"

#include <algorithm>
#include <array>

#include "arch/x86/register_table.hpp"
#include "arch/x86/target_xml.hpp"
#include "arch/x86/xsave_area.hpp"

namespace backtrail::arch::x86 {
namespace {

void store(std::uint64_t value, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = i < 8 ? static_cast<std::uint8_t>(value >> (8 * i)) : std::uint8_t{0};
  }
}

std::uint64_t load(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 8; ++i) {
    value |= std::uint64_t{bytes[i]} << (8 * i);
  }
  return value;
}

/// Returns true for the registers that gdb assumes of a Linux target without a description.
bool is_assumed(std::string_view feature) {
  return feature == kFeatureCore || feature == kFeatureSse || feature == kFeatureLinux ||
         feature == kFeatureSegments;
}

/// Returns the kernel's 64-bit word for a register of which gdb set the low `bytes`. The kernel
/// compares eax and orig_eax as signed numbers to decide on restarting a system call, so negative
/// values of a 32-bit program must stay negative. Other registers are zero-extended.
std::uint64_t user_word(UserReg reg, std::uint64_t value, std::size_t bytes) {
  if (bytes >= 8) return value;
  const bool is_signed = reg == UserReg::kRax || reg == UserReg::kOrigRax;
  constexpr std::uint64_t kSign = std::uint64_t{1} << 31;
  return is_signed ? (value ^ kSign) - kSign : value;
}

}  // namespace

GdbRegisterSet::GdbRegisterSet(Isa isa, const XsaveLayout& layout) : isa_{isa}, layout_{layout} {
  for (RegisterEntry& entry : make_register_table(isa, layout)) {
    block_bytes_ = entry.gdb.offset + entry.gdb.bytes();
    if (is_assumed(entry.gdb.feature)) assumed_block_bytes_ = block_bytes_;
    registers_.push_back(std::move(entry.gdb));
    sources_.push_back(entry.source);
  }
  static constexpr std::array kExpedited64{"rbp", "rsp", "rip"};
  static constexpr std::array kExpedited32{"ebp", "esp", "eip"};
  for (const char* name : isa == Isa::kAmd64 ? kExpedited64 : kExpedited32) {
    pc_number_ = find(name).value_or(0);
    expedited_.push_back(pc_number_);
  }
  target_xml_ = make_target_xml(isa, registers_);
  assumed_xml_ = make_target_xml(isa, {});
}

std::optional<std::size_t> GdbRegisterSet::find(std::string_view name) const {
  const auto found = std::find_if(registers_.begin(), registers_.end(),
                                  [name](const GdbRegister& r) { return r.name == name; });
  if (found == registers_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - registers_.begin());
}

void GdbRegisterSet::read_register(std::size_t number, const RawRegisters& raw,
                                   std::span<std::uint8_t> out) const {
  const RegisterSource& source = sources_[number];
  const XsaveReader xsave{layout_, raw.xsave};
  switch (source.kind) {
    case RegisterSource::Kind::kUser:
      store(raw.user[source.user], out);
      break;
    case RegisterSource::Kind::kComponent:
      xsave.read(source.component, source.offset, out);
      break;
    case RegisterSource::Kind::kX87Control:
      store(xsave.x87(source.control, isa_), out);
      break;
    case RegisterSource::Kind::kMxcsr:
      store(xsave.mxcsr(), out);
      break;
  }
}

bool GdbRegisterSet::write_register(std::size_t number, std::span<const std::uint8_t> value,
                                    RawRegisters& raw) const {
  const RegisterSource& source = sources_[number];
  XsaveWriter xsave{layout_, raw.xsave};
  switch (source.kind) {
    case RegisterSource::Kind::kUser:
      raw.user[source.user] = user_word(source.user, load(value), value.size());
      return true;
    case RegisterSource::Kind::kComponent:
      return xsave.write(source.component, source.offset, value);
    case RegisterSource::Kind::kX87Control:
      return xsave.set_x87(source.control, isa_, static_cast<std::uint32_t>(load(value)));
    case RegisterSource::Kind::kMxcsr:
      return xsave.set_mxcsr(static_cast<std::uint32_t>(load(value)));
  }
  return false;
}

std::vector<std::uint8_t> GdbRegisterSet::to_gdb(const RawRegisters& raw) const {
  std::vector<std::uint8_t> block(block_bytes_);
  for (std::size_t i = 0; i < registers_.size(); ++i) {
    read_register(i, raw, std::span{block}.subspan(registers_[i].offset, registers_[i].bytes()));
  }
  return block;
}

void GdbRegisterSet::from_gdb(std::span<const std::uint8_t> block, RawRegisters& raw) const {
  // ftag depends on other registers, so the comparison uses the state before all changes.
  const std::vector<std::uint8_t> before = to_gdb(raw);
  for (std::size_t i = 0; i < registers_.size(); ++i) {
    const GdbRegister& r = registers_[i];
    if (r.offset + r.bytes() > block.size()) break;
    const auto value = block.subspan(r.offset, r.bytes());
    if (std::equal(value.begin(), value.end(),
                   before.begin() + static_cast<std::ptrdiff_t>(r.offset))) {
      continue;
    }
    write_register(i, value, raw);
  }
}

Result<std::vector<std::uint8_t>> GdbRegisterSet::read_one(std::size_t number,
                                                           const RawRegisters& raw) const {
  if (number >= registers_.size()) {
    return fail(TraceErrc::kInvalidArgument, "read register", number);
  }
  std::vector<std::uint8_t> value(registers_[number].bytes());
  read_register(number, raw, value);
  return value;
}

Result<void> GdbRegisterSet::write_one(std::size_t number, std::span<const std::uint8_t> value,
                                       RawRegisters& raw) const {
  if (number >= registers_.size() || value.size() != registers_[number].bytes()) {
    return fail(TraceErrc::kInvalidArgument, "write register", number);
  }
  std::vector<std::uint8_t> before(value.size());
  read_register(number, raw, before);
  if (std::equal(value.begin(), value.end(), before.begin())) return {};
  if (!write_register(number, value, raw)) {
    return fail(TraceErrc::kInvalidArgument, "write register", number);
  }
  return {};
}

}  // namespace backtrail::arch::x86
