// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/note_layout.hpp"

namespace backtrail::decoder {
namespace {

using enum arch::cpu::UserReg;

constexpr std::array kOrder64{kR15,    kR14, kR13, kR12,    kRbp,    kRbx, kR11,     kR10, kR9,
                              kR8,     kRax, kRcx, kRdx,    kRsi,    kRdi, kOrigRax, kRip, kCs,
                              kEflags, kRsp, kSs,  kFsBase, kGsBase, kDs,  kEs,      kFs,  kGs};
constexpr std::array kOrder32{kRbx, kRcx, kRdx,     kRsi, kRdi, kRbp,    kRax, kDs, kEs,
                              kFs,  kGs,  kOrigRax, kRip, kCs,  kEflags, kRsp, kSs};

constexpr PrstatusLayout kPrstatus64{336, 8, 24, 32, 112, kOrder64, 328};
constexpr PrstatusLayout kPrstatus32{144, 4, 20, 24, 72, kOrder32, 140};
constexpr PsinfoLayout kPsinfo64{136, 16, 4, 24, 40, 56};
constexpr PsinfoLayout kPsinfo32{124, 8, 2, 12, 28, 44};

}  // namespace

const PrstatusLayout& prstatus_layout(arch::Isa isa) {
  return isa == arch::Isa::kAmd64 ? kPrstatus64 : kPrstatus32;
}

const PsinfoLayout& psinfo_layout(arch::Isa isa) {
  return isa == arch::Isa::kAmd64 ? kPsinfo64 : kPsinfo32;
}

}  // namespace backtrail::decoder
