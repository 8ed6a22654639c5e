// SPDX-License-Identifier: Apache-2.0
// Decodes untrusted Intel PT packets over a program chosen by the first byte.
#include <cstdint>
#include <vector>

#include "decoder/pt/pt_decoder.hpp"
#include "test/unit/decoder/toy_machine.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace backtrail;
  if (size == 0) return 0;
  test::Random random{data[0]};
  const arch::Isa isa = data[0] % 4 == 0 ? arch::Isa::kI386 : arch::Isa::kAmd64;
  test::ToyProgram program{isa, random};
  decoder::InsnCache insns{program};
  for (const bool libipt_alone : {false, true}) {
    decoder::PtDecoder decoder{insns};
    if (libipt_alone) decoder.use_libipt_alone();
    std::vector<decoder::Record> records;
    (void)decoder.decode({data + 1, size - 1}, records);
  }
  return 0;
}
