// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/block_walker.hpp"

namespace backtrail::decoder {

Walk walk_block(InsnCache& insns, TraceeAddr begin, TraceeAddr stop) {
  return walk_block(insns, begin, stop, [](TraceeAddr, const arch::InsnFacts&) {});
}

}  // namespace backtrail::decoder
