// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// gdb's view of the registers: numbers, order, the `g` packet, target.xml. Source: GDB manual,
/// "i386 Features"; numbered as by gdbserver.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/base/result.hpp"
#include "arch/isa.hpp"
#include "arch/x86/gdb_register.hpp"
#include "arch/x86/raw_registers.hpp"
#include "arch/x86/register_source.hpp"
#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86 {

/// The register description of one kind of process on one CPU. Immutable and shared by reference;
/// built once for each (isa, xcr0).
class GdbRegisterSet {
 public:
  GdbRegisterSet(Isa isa, const XsaveLayout& layout);

  [[nodiscard]] Isa isa() const { return isa_; }
  [[nodiscard]] std::span<const GdbRegister> registers() const { return registers_; }
  [[nodiscard]] std::size_t block_bytes() const { return block_bytes_; }
  /// Size of the `g` packet for a client that reads no register descriptions: the registers that
  /// gdb assumes then, up to SSE, come first.
  [[nodiscard]] std::size_t assumed_block_bytes() const { return assumed_block_bytes_; }
  /// Returns the number of the register called `name`; nullopt if there is none.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  /// Registers sent with every stop reply: rbp rsp rip (ebp esp eip).
  [[nodiscard]] std::span<const std::size_t> expedited() const { return expedited_; }
  [[nodiscard]] std::size_t pc_number() const { return pc_number_; }

  /// The document for qXfer:features:read:target.xml.
  [[nodiscard]] const std::string& target_xml() const { return target_xml_; }
  /// The document for a client that reads no register descriptions: it has none.
  [[nodiscard]] const std::string& assumed_xml() const { return assumed_xml_; }

  /// Returns the bytes of the `g` packet. A component whose XSTATE_BV bit is clear has its initial
  /// values.
  [[nodiscard]] std::vector<std::uint8_t> to_gdb(const RawRegisters& raw) const;
  /// Applies bytes in `g` order to `raw`; a shorter block sets the registers it covers. Sets the
  /// XSTATE_BV bits of components that change, and leaves unchanged components alone.
  void from_gdb(std::span<const std::uint8_t> block, RawRegisters& raw) const;
  /// Returns one register's bytes. Error kInvalidArgument: unknown number or wrong size.
  Result<std::vector<std::uint8_t>> read_one(std::size_t number, const RawRegisters& raw) const;
  Result<void> write_one(std::size_t number, std::span<const std::uint8_t> value,
                         RawRegisters& raw) const;

 private:
  void read_register(std::size_t number, const RawRegisters& raw,
                     std::span<std::uint8_t> out) const;
  bool write_register(std::size_t number, std::span<const std::uint8_t> value,
                      RawRegisters& raw) const;

  Isa isa_;
  XsaveLayout layout_;
  std::vector<GdbRegister> registers_;
  std::vector<RegisterSource> sources_;  ///< Parallel to registers_.
  std::vector<std::size_t> expedited_;
  std::size_t block_bytes_ = 0;
  std::size_t assumed_block_bytes_ = 0;
  std::size_t pc_number_ = 0;
  std::string target_xml_;
  std::string assumed_xml_;
};

}  // namespace backtrail::arch::x86
