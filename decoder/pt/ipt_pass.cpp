// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/ipt_pass.hpp"

#include <algorithm>

#include <intel-pt.h>

namespace backtrail::decoder {
namespace {

using enum PtPlace::Kind;

/// Most blocks followed without a packet; a program may stay in a loop of direct jumps forever.
constexpr std::size_t kMaxBlocksWithoutPacket = std::size_t{1} << 16U;

pt_cpu to_pt_cpu(const CpuIdentity& cpu) {
  pt_cpu out{};
  out.vendor = pcv_intel;
  out.family = static_cast<std::uint16_t>(cpu.family);
  out.model = static_cast<std::uint8_t>(cpu.model);
  out.stepping = static_cast<std::uint8_t>(cpu.stepping);
  return out;
}

int read_code(std::uint8_t* buffer, std::size_t size, const pt_asid* /*asid*/, std::uint64_t ip,
              void* context) {
  auto& code = *static_cast<CodeReader*>(context);
  const std::size_t count = code.read_code(TraceeAddr{ip}, {buffer, size});
  return count == 0 ? -pte_nomap : static_cast<int>(count);
}

}  // namespace

PtErrata pt_errata_of(const CpuIdentity& cpu) {
  const pt_cpu identity = to_pt_cpu(cpu);
  pt_errata errata{};
  if (pt_cpu_errata(&errata, &identity) < 0) return {};
  return {errata.bdm70 != 0, errata.skd010 != 0 || errata.apl11 != 0 || errata.apl12 != 0};
}

bool pt_errata_known(const CpuIdentity& cpu) {
  const pt_cpu identity = to_pt_cpu(cpu);
  pt_errata errata{};
  return pt_cpu_errata(&errata, &identity) == 0;
}

void IptPass::Free::operator()(pt_block_decoder* decoder) const {
  pt_blk_free_decoder(decoder);
}

IptPass::IptPass(InsnCache& insns, std::span<const std::uint8_t> packets,
                 const std::optional<CpuIdentity>& cpu, std::span<const PtCodeFile> files)
    : insns_{insns}, packets_(packets.begin(), packets.end()) {
  // libipt's configuration asks for writable bytes, though decoding never writes to them.
  pt_config config;
  pt_config_init(&config);
  config.begin = packets_.data();
  config.end = packets_.data() + packets_.size();
  config.flags.variant.block.end_on_call = 1;
  config.flags.variant.block.end_on_jump = 1;
  if (cpu) {
    config.cpu = to_pt_cpu(*cpu);
    if (pt_cpu_errata(&config.errata, &config.cpu) < 0) config.cpu = {};
  }
  decoder_.reset(pt_blk_alloc_decoder(&config));
  if (!decoder_) return;
  pt_image* const image = pt_blk_get_image(decoder_.get());
  for (const PtCodeFile& file : files) {
    (void)pt_image_add_file(image, file.path.c_str(), file.offset, file.size, nullptr,
                            file.address.value());
  }
  pt_image_set_callback(image, &read_code, &insns_.code());
}

IptPass::~IptPass() = default;

std::optional<std::size_t> IptPass::run(std::size_t offset, PtPlace& place,
                                        std::vector<Record>& out) {
  failed_at_ = offset;
  if (!decoder_) return std::nullopt;
  int status = pt_blk_sync_set(decoder_.get(), offset);
  if (status < 0) return std::nullopt;
  position_ = 0;
  confirmed_ = out.size();
  blocks_ = 0;
  while (status >= 0) status = step(status, place, out);
  if (status == -pte_eos) {
    // After the last packet libipt follows direct jumps that may not have been reached.
    if (place.kind == kBehind) out.resize(std::min(confirmed_, out.size()));
    failed_at_.reset();
    return std::nullopt;
  }
  note_position(out);
  failed_at_ = position_;
  place.interrupted_by(GapReason::kUndecodable);
  std::uint64_t next = 0;
  if (pt_blk_sync_forward(decoder_.get()) < 0) return std::nullopt;
  if (pt_blk_get_sync_offset(decoder_.get(), &next) < 0) return std::nullopt;
  return next;
}

int IptPass::step(int status, PtPlace& place, std::vector<Record>& out) {
  // Reads an event only if the status announces it: others may belong after the next block.
  while ((status & pts_event_pending) != 0) {
    pt_event event{};
    status = pt_blk_event(decoder_.get(), &event, sizeof(event));
    if (status < 0) return status;
    note(event, place, out);
  }
  note_position(out);
  if (++blocks_ > kMaxBlocksWithoutPacket) {
    out.resize(confirmed_);
    return -pte_bad_context;
  }
  pt_block block{};
  const bool no_more_packets = (status & pts_eos) != 0;
  status = pt_blk_next(decoder_.get(), &block, sizeof(block));
  if (block.ninsn != 0) {
    arrive(TraceeAddr{block.ip}, place, out);
    place.kind = kBehind;
    place.last = TraceeAddr{block.end_ip};
  }
  // A branch that needs a packet after the last one: from 2.1 on an error of its own.
  if (no_more_packets && status == -pte_bad_query) return -pte_eos;
  return status;
}

void IptPass::note_position(const std::vector<Record>& out) {
  std::uint64_t now = 0;
  if (pt_blk_get_offset(decoder_.get(), &now) < 0 || now == position_) return;
  position_ = now;
  confirmed_ = out.size();
  blocks_ = 0;
}

void IptPass::note(const pt_event& event, PtPlace& place, std::vector<Record>& out) {
  // From 2.1 on libipt says at each synchronization point whether tracing is on. That is no change,
  // and execution may reach the address only later.
  if (event.status_update != 0) return;
  switch (event.type) {
    case ptev_enabled:
      arrive(TraceeAddr{event.variant.enabled.ip}, place, out);
      break;
    case ptev_disabled:
      if (place.kind == kBehind) place.kind = kLeft;
      break;
    case ptev_async_disabled:
      arrive(TraceeAddr{event.variant.async_disabled.at}, place, out);
      place.kind = kStopped;
      break;
    case ptev_async_branch: {
      const TraceeAddr to{event.variant.async_branch.to};
      arrive(TraceeAddr{event.variant.async_branch.from}, place, out);
      out.push_back(async_transfer(place.here, to));
      place.here = to;
      break;
    }
    case ptev_overflow:
      place.interrupted_by(GapReason::kOverflow);
      break;
    default:
      break;
  }
}

void IptPass::arrive(TraceeAddr at, PtPlace& place, std::vector<Record>& out) {
  if (const auto record = place.arrive(at, insns_)) out.push_back(*record);
}

}  // namespace backtrail::decoder
