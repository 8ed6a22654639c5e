#include "decoder/pt/pt_decoder.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <intel-pt.h>

#include "decoder/trace/block_walker.hpp"

namespace backtrail::decoder {
namespace {

using BlockDecoder = std::unique_ptr<pt_block_decoder, decltype(&pt_blk_free_decoder)>;

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

/// One pass over one stretch.
class Pass {
 public:
  Pass(InsnCache& insns, BlockDecoder decoder, std::vector<Record>& out)
      : insns_{insns}, decoder_{std::move(decoder)}, out_{out} {}

  bool run() {
    while (pt_blk_sync_forward(decoder_.get()) >= 0) {
      int status = 0;
      // A fresh synchronisation has its events pending; asking for them costs nothing.
      while ((status = step()) >= 0) {
      }
      if (status == -pte_eos) {
        drop_unconfirmed();
        break;
      }
      interrupted_by(GapReason::kUndecodable);
    }
    return place_ == Place::kStopped || place_ == Place::kLeft;
  }

 private:
  /// What is known of where execution is.
  enum class Place : std::uint8_t {
    kUnknown,  ///< Nothing was seen yet, or something is missing, for `reason_`.
    kAt,       ///< At `here_`, nothing executed since a packet said so.
    kBehind,   ///< Behind the last instruction.
    kLeft,     ///< Tracing stopped behind the last instruction.
    kStopped,  ///< It stopped before the instruction at `here_`.
  };

  int step() {
    int status = 0;
    for (;;) {
      pt_event event{};
      status = pt_blk_event(decoder_.get(), &event, sizeof(event));
      if (status == -pte_bad_query) break;  // None is pending.
      if (status < 0) return status;
      note(event);
      if ((status & pts_event_pending) == 0) break;
    }
    note_position();
    pt_block block{};
    status = pt_blk_next(decoder_.get(), &block, sizeof(block));
    if (block.ninsn != 0) add(block);
    return status;
  }

  void note_position() {
    std::uint64_t now = 0;
    if (pt_blk_get_offset(decoder_.get(), &now) < 0 || now == position_) return;
    position_ = now;
    confirmed_ = out_.size();
  }

  /// Behind the last packet direct jumps are followed that perhaps were not reached.
  void drop_unconfirmed() {
    if (place_ == Place::kBehind) out_.resize(std::min(confirmed_, out_.size()));
  }

  void note(const pt_event& event) {
    switch (event.type) {
      case ptev_enabled:
        arrive(TraceeAddr{event.variant.enabled.ip});
        break;
      case ptev_disabled:
        if (place_ == Place::kBehind) place_ = Place::kLeft;
        break;
      case ptev_async_disabled:
        arrive(TraceeAddr{event.variant.async_disabled.at});
        place_ = Place::kStopped;
        break;
      case ptev_async_branch:
        arrive(TraceeAddr{event.variant.async_branch.from});
        out_.push_back(async_transfer(here_, TraceeAddr{event.variant.async_branch.to}));
        here_ = TraceeAddr{event.variant.async_branch.to};
        break;
      case ptev_overflow:
        interrupted_by(GapReason::kOverflow);
        break;
      default:
        break;
    }
  }

  void interrupted_by(GapReason reason) {
    if (place_ == Place::kUnknown) return;
    place_ = Place::kUnknown;
    reason_ = reason;
  }

  void add(const pt_block& block) {
    arrive(TraceeAddr{block.ip});
    place_ = Place::kBehind;
    last_ = TraceeAddr{block.end_ip};
  }

  /// Execution is before the instruction at `at`: records how it came there.
  void arrive(TraceeAddr at) {
    switch (std::exchange(place_, Place::kAt)) {
      case Place::kUnknown:
        out_.push_back(gap(reason_, TraceeAddr{}, at));
        break;
      case Place::kAt:
        // No packet moves control without saying so; where one seems to, something is missing.
        if (at != here_) out_.push_back(gap(GapReason::kUndecodable, here_, at));
        break;
      case Place::kBehind:
        follow(at, false);
        break;
      case Place::kLeft:
        follow(at, true);
        break;
      case Place::kStopped:
        if (at != here_) out_.push_back(async_transfer(here_, at));
        break;
    }
    here_ = at;
  }

  void follow(TraceeAddr at, bool was_off) {
    const arch::InsnFacts& last = insns_.at(last_);
    const TraceeAddr behind = last_ + last.length;
    using enum arch::InsnKind;
    if (falls_through(last.kind) && at == behind) return;
    if (was_off && (last.kind == kOther || last.kind == kSystemCall)) {
      out_.push_back(gap(GapReason::kUnseenAsync, behind, at));
    } else {
      out_.push_back(branch(last_, at));
    }
  }

  InsnCache& insns_;
  BlockDecoder decoder_;
  std::vector<Record>& out_;
  Place place_ = Place::kUnknown;
  GapReason reason_ = GapReason::kStart;
  std::uint64_t position_ = 0;  ///< Of the packets, when the last block was asked for.
  std::size_t confirmed_ = 0;   ///< So many records need no packet that is not there yet.
  TraceeAddr last_;             ///< The last instruction executed.
  TraceeAddr here_;
};

}  // namespace

bool pt_errata_known(const CpuIdentity& cpu) {
  const pt_cpu identity = to_pt_cpu(cpu);
  pt_errata errata{};
  return pt_cpu_errata(&errata, &identity) == 0;
}

PtDecoder::PtDecoder(InsnCache& insns, std::optional<CpuIdentity> cpu) : insns_{insns}, cpu_{cpu} {}

bool PtDecoder::decode(std::span<const std::uint8_t> packets, std::vector<Record>& out) const {
  if (packets.empty()) return false;
  // libipt's configuration wants writable bytes; it never writes to them when decoding.
  std::vector<std::uint8_t> bytes(packets.begin(), packets.end());
  pt_config config;
  pt_config_init(&config);
  config.begin = bytes.data();
  config.end = bytes.data() + bytes.size();
  config.flags.variant.block.end_on_call = 1;
  config.flags.variant.block.end_on_jump = 1;
  if (cpu_) {
    config.cpu = to_pt_cpu(*cpu_);
    if (pt_cpu_errata(&config.errata, &config.cpu) < 0) config.cpu = {};
  }
  BlockDecoder decoder{pt_blk_alloc_decoder(&config), &pt_blk_free_decoder};
  if (!decoder) return false;
  pt_image* const image = pt_blk_get_image(decoder.get());
  for (const PtCodeFile& file : files_) {
    (void)pt_image_add_file(image, file.path.c_str(), file.offset, file.size, nullptr,
                            file.address.value());
  }
  pt_image_set_callback(image, &read_code, &insns_.code());
  return Pass{insns_, std::move(decoder), out}.run();
}

}  // namespace backtrail::decoder
