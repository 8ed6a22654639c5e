// SPDX-License-Identifier: Apache-2.0
#include "test/support/ipt_oracle.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <ostream>

#include <fmt/format.h>
#include <intel-pt.h>

#include "decoder/pt/pt_packets.hpp"

namespace backtrail::test {
namespace {

using DecoderPtr = std::unique_ptr<pt_insn_decoder, decltype(&pt_insn_free_decoder)>;

int read_code(std::uint8_t* buffer, std::size_t size, const pt_asid*, std::uint64_t ip,
              void* context) {
  auto& code = *static_cast<decoder::CodeReader*>(context);
  const std::size_t count = code.read_code(TraceeAddr{ip}, {buffer, size});
  return count == 0 ? -pte_nomap : static_cast<int>(count);
}

/// libipt's configuration asks for writable bytes, though decoding never writes to them.
pt_config config_for(std::vector<std::uint8_t>& bytes) {
  pt_config config;
  pt_config_init(&config);
  config.begin = bytes.data();
  config.end = bytes.data() + bytes.size();
  return config;
}

/// One pass over a stream.
class Run {
 public:
  Run(std::span<const std::uint8_t> packets, decoder::CodeReader& code)
      : bytes_(packets.begin(), packets.end()) {
    const pt_config config = config_for(bytes_);
    decoder_.reset(pt_insn_alloc_decoder(&config));
    pt_image_set_callback(pt_insn_get_image(decoder_.get()), &read_code, &code);
  }

  std::vector<IptItem> decode() {
    for (;;) {
      int status = pt_insn_sync_forward(decoder_.get());
      if (status < 0) {
        if (status != -pte_eos) add(IptItem::Kind::kError, 0, -status);
        return std::move(items_);
      }
      while (status >= 0) status = step(status);
      if (status != -pte_eos) add(IptItem::Kind::kError, last_address_, -status);
    }
  }

  /// Returns the class of the instruction at the first PSB.
  std::string first_insn_class() {
    static constexpr std::array kNames{"error",    "other",     "call",     "return",
                                       "jump",     "cond_jump", "far_call", "far_return",
                                       "far_jump", "ptwrite"};
    int status = pt_insn_sync_forward(decoder_.get());
    while (status >= 0 && (status & pts_event_pending) != 0) {
      pt_event event{};
      status = pt_insn_event(decoder_.get(), &event, sizeof(event));
    }
    pt_insn insn{};
    // Fails because no packets follow a branch, but fills in the instruction.
    (void)pt_insn_next(decoder_.get(), &insn, sizeof(insn));
    const auto index = static_cast<std::size_t>(insn.iclass);
    return index < kNames.size() ? kNames.at(index) : "unknown";
  }

 private:
  /// Handles pending events and then one instruction. A negative status ends the stretch.
  int step(int status) {
    while ((status & pts_event_pending) != 0) {
      pt_event event{};
      status = pt_insn_event(decoder_.get(), &event, sizeof(event));
      if (status < 0) return status;
      note(event);
    }
    pt_insn insn{};
    status = pt_insn_next(decoder_.get(), &insn, sizeof(insn));
    last_address_ = insn.ip;
    if (status >= 0) add(IptItem::Kind::kInsn, insn.ip, 0);
    // A complete trace ends with tracing off, where there is no instruction to read.
    if (status == -pte_eos && insn.size != 0) add(IptItem::Kind::kError, insn.ip, pte_eos);
    return status;
  }

  void note(const pt_event& event) {
    // From 2.1 on libipt says at each synchronization point whether tracing is on.
    if (event.status_update != 0) return;
    if (event.type == ptev_enabled && event.variant.enabled.resumed == 0 && !items_.empty()) {
      add(IptItem::Kind::kGap, event.variant.enabled.ip, 0);
    } else if (event.type == ptev_overflow) {
      add(IptItem::Kind::kLost, event.variant.overflow.ip, 0);
    }
  }

  void add(IptItem::Kind kind, std::uint64_t address, int error) {
    items_.push_back({kind, address, error});
  }

  std::vector<std::uint8_t> bytes_;
  DecoderPtr decoder_{nullptr, &pt_insn_free_decoder};
  std::vector<IptItem> items_;
  std::uint64_t last_address_ = 0;
};

/// Code of a single instruction at address 0x1000.
class OneInsn : public decoder::CodeReader {
 public:
  static constexpr TraceeAddr kAt{0x1000};

  OneInsn(arch::Isa isa, std::span<const std::uint8_t> bytes) : isa_{isa}, bytes_{bytes} {}
  [[nodiscard]] arch::Isa isa() const override { return isa_; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    if (address < kAt || address - kAt >= bytes_.size()) return 0;
    const auto rest = bytes_.subspan(address - kAt);
    const std::size_t count = std::min(rest.size(), out.size());
    std::copy_n(rest.begin(), count, out.begin());
    return count;
  }

 private:
  arch::Isa isa_;
  std::span<const std::uint8_t> bytes_;
};

std::string tnt_name(const pt_packet_tnt& tnt) {
  std::string name = "tnt(";
  for (unsigned bit = tnt.bit_size; bit-- != 0;) {
    name += (tnt.payload >> bit & 1U) != 0 ? '1' : '0';
  }
  return name + ")";
}

std::string packet_name(const pt_packet& packet) {
  switch (packet.type) {
    case ppt_psb:
      return "psb";
    case ppt_psbend:
      return "psbend";
    case ppt_mode:
      return "mode";
    case ppt_tip_pge:
      return "pge";
    case ppt_tip_pgd:
      return "pgd";
    case ppt_tip:
      return "tip";
    case ppt_fup:
      return "fup";
    case ppt_ovf:
      return "ovf";
    case ppt_tnt_8:
    case ppt_tnt_64:
      return tnt_name(packet.payload.tnt);
    default:
      return fmt::format("type{}", static_cast<int>(packet.type));
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const IptItem& item) {
  switch (item.kind) {
    case IptItem::Kind::kInsn:
      return out << fmt::format("{:#x}", item.address);
    case IptItem::Kind::kGap:
      return out << fmt::format("gap->{:#x}", item.address);
    case IptItem::Kind::kLost:
      return out << fmt::format("lost->{:#x}", item.address);
    case IptItem::Kind::kError:
      return out << fmt::format("error {} ({}) at {:#x}", item.error,
                                pt_errstr(static_cast<pt_error_code>(item.error)), item.address);
  }
  return out;
}

std::vector<IptItem> decode_ipt(std::span<const std::uint8_t> packets, decoder::CodeReader& code) {
  if (packets.empty()) return {};
  return Run{packets, code}.decode();
}

std::vector<std::uint64_t> executed(std::span<const IptItem> items) {
  std::vector<std::uint64_t> addresses;
  for (const IptItem& item : items) {
    if (item.kind == IptItem::Kind::kInsn) addresses.push_back(item.address);
  }
  return addresses;
}

std::string packet_names(std::span<const std::uint8_t> packets) {
  if (packets.empty()) return "";
  std::vector<std::uint8_t> bytes(packets.begin(), packets.end());
  const pt_config config = config_for(bytes);
  const std::unique_ptr<pt_packet_decoder, decltype(&pt_pkt_free_decoder)> decoder{
      pt_pkt_alloc_decoder(&config), &pt_pkt_free_decoder};
  std::string names;
  pt_packet packet{};
  pt_pkt_sync_set(decoder.get(), 0);
  int status = 0;
  while ((status = pt_pkt_next(decoder.get(), &packet, sizeof(packet))) > 0) {
    if (packet.type == ppt_pad) continue;
    if (!names.empty()) names += ' ';
    names += packet_name(packet);
  }
  return status == -pte_eos ? names : names + fmt::format(" error({})", -status);
}

std::map<std::string, std::uint64_t> packet_counts(std::span<const std::uint8_t> packets) {
  // In the order of pt_packet_type, from ppt_pad on.
  static constexpr std::array kNames{
      "pad",  "psb", "psbend", "fup",   "tip",  "tip.pge", "tip.pgd", "tnt.8", "tnt.64",
      "mode", "pip", "vmcs",   "cbr",   "tsc",  "tma",     "mtc",     "cyc",   "stop",
      "ovf",  "mnt", "exstop", "mwait", "pwre", "pwrx",    "ptw"};
  std::map<std::string, std::uint64_t> counts;
  if (packets.empty()) return counts;
  std::vector<std::uint8_t> bytes(packets.begin(), packets.end());
  const pt_config config = config_for(bytes);
  const std::unique_ptr<pt_packet_decoder, decltype(&pt_pkt_free_decoder)> decoder{
      pt_pkt_alloc_decoder(&config), &pt_pkt_free_decoder};
  while (pt_pkt_sync_forward(decoder.get()) >= 0) {
    pt_packet packet{};
    int status = 0;
    while ((status = pt_pkt_next(decoder.get(), &packet, sizeof(packet))) > 0)
      ++counts[kNames.at(static_cast<std::size_t>(packet.type - ppt_pad))];
    if (status != -pte_eos) ++counts["error"];
  }
  return counts;
}

std::string ipt_insn_class(arch::Isa isa, std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> packets;
  {
    decoder::PacketState state;
    decoder::PacketWriter writer{state, packets};
    writer.psb();
    writer.mode_exec(isa);
    writer.fup(OneInsn::kAt);
    writer.psbend();
  }
  OneInsn code{isa, bytes};
  return Run{packets, code}.first_insn_class();
}

}  // namespace backtrail::test
