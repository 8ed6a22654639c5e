// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes the Intel PT packets that the encoder uses.
///
///     PAD        00
///     TNT        bits, oldest highest, below a stop bit; bit 0 of the byte is 0
///     TIP        iii01101  target      iii: how many bytes of the address follow, and how they
///     TIP.PGE    iii10001  target           are joined with the last address written
///     TIP.PGD    00000001
///     FUP        iii11101  address
///     MODE.Exec  99 01 (64-bit code), 99 02 (32-bit code)
///     PSB        02 82, eight times
///     PSBEND     02 23
///     OVF        02 f3
///
/// TNT packets have at most 6 bits here. The long form has 47 bits in 8 bytes, which is fewer for
/// each byte.
/// Source: SDM vol. 3, "Packet Definitions" of "Intel Processor Trace".

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"

namespace backtrail::decoder {

/// State that determines a packet's encoding, and pending bits. May be copied to write a
/// continuation elsewhere.
struct PacketState {
  std::uint64_t tnt_bits = 0;   ///< Pending bits, the newest in the lowest position.
  std::uint32_t tnt_count = 0;  ///< At most kMaxTntBits - 1 between calls.
  bool has_last_ip = false;
  std::uint64_t last_ip = 0;  ///< The address that later ones are compressed against.
};

/// Appends packets to a vector. Pending TNT bits are written before any other packet.
class PacketWriter {
 public:
  static constexpr std::uint32_t kMaxTntBits = 6;

  /// Borrows both. `out` has spare bytes at its end while the writer lives.
  PacketWriter(PacketState& state, std::vector<std::uint8_t>& out)
      : state_{state}, out_{out}, used_{out.size()} {}
  ~PacketWriter() { out_.resize(used_); }
  PacketWriter(const PacketWriter&) = delete;
  PacketWriter& operator=(const PacketWriter&) = delete;

  void taken() {
    state_.tnt_bits = state_.tnt_bits << 1U | 1U;
    ++state_.tnt_count;
    write_full_tnt();
  }
  /// Adds `count` conditional jumps that were not taken.
  void not_taken(std::uint32_t count) {
    // Keeps count, the pending bits and one more below 64.
    static constexpr std::uint32_t kStep = 48;
    for (; count > kStep; count -= kStep) append_zeros(kStep);
    append_zeros(count);
  }
  /// Writes pending TNT bits.
  void flush() {
    if (state_.tnt_count == 0) return;
    room(1);
    put_tnt(state_.tnt_bits, state_.tnt_count);
    state_.tnt_bits = 0;
    state_.tnt_count = 0;
  }

  void tip(TraceeAddr to) { put_ip(0x0d, to); }
  void fup(TraceeAddr at) { put_ip(0x1d, at); }
  void tip_pge(TraceeAddr to) { put_ip(0x11, to); }
  void tip_pgd() { put({0x01}); }
  void mode_exec(arch::Isa isa) {
    put({0x99, static_cast<std::uint8_t>(isa == arch::Isa::kAmd64 ? 0x01 : 0x02)});
  }
  /// Restarts address compression.
  void psb();
  void psbend() { put({0x02, 0x23}); }
  /// Restarts address compression, as decoders do at an OVF.
  void ovf();

 private:
  void append_zeros(std::uint32_t count) {
    state_.tnt_bits <<= count;
    state_.tnt_count += count;
    write_full_tnt();
  }
  void write_full_tnt() {
    if (state_.tnt_count < kMaxTntBits) return;
    room(64 / kMaxTntBits + 1);
    do {
      state_.tnt_count -= kMaxTntBits;
      put_tnt(state_.tnt_bits >> state_.tnt_count, kMaxTntBits);
    } while (state_.tnt_count >= kMaxTntBits);
    state_.tnt_bits &= (std::uint64_t{1} << state_.tnt_count) - 1;
  }
  void put_tnt(std::uint64_t bits, std::uint32_t count) {
    const std::uint64_t stop = std::uint64_t{1} << count;
    out_[used_++] = static_cast<std::uint8_t>((stop | (bits & (stop - 1))) << 1U);
  }
  void room(std::size_t bytes) {
    if (out_.size() - used_ < bytes) grow(bytes);
  }
  void grow(std::size_t bytes);
  void put(std::initializer_list<std::uint8_t> bytes);
  void put_ip(std::uint8_t opcode, TraceeAddr ip);

  PacketState& state_;
  std::vector<std::uint8_t>& out_;
  std::size_t used_;  // Bytes of out_ that are packets.
};

}  // namespace backtrail::decoder
