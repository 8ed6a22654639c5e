// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/past_code.hpp"

#include <vector>

namespace backtrail::decoder {

CodeHistory* PastCode::of(std::uint32_t tid) {
  const auto [found, is_new] = threads_.try_emplace(tid);
  if (is_new) {
    const std::vector<ValueFact> facts = archive_.code_facts(tid);
    if (!facts.empty()) {
      found->second = std::make_unique<CodeHistory>(at_end_.code().isa(), facts);
    }
  }
  return found->second.get();
}

}  // namespace backtrail::decoder
