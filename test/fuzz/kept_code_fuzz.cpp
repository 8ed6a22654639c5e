// Kept translations put together from anybody's parts: refused, or of use as they are.
#include <cstdlib>

#include <fuzzer/FuzzedDataProvider.h>

#include "ptrace/cache/kept_code.hpp"

namespace {

using namespace backtrail::tracee::cache;

/// Up to 64 elements of whatever bytes come.
template <typename T>
void take(FuzzedDataProvider& input, std::vector<T>& out) {
  out.resize(input.ConsumeIntegralInRange<std::size_t>(0, 64));
  for (T& element : out) (void)input.ConsumeData(&element, sizeof element);
}

void look_at(const KeptCode& code) {
  const KeptView& parts = code.parts();
  for (std::uint32_t number = 0; number < parts.exits.size(); ++number) (void)code.exit(number);
  for (const auto& [head, offset] : parts.bodies) {
    if (!code.body(head) || offset > parts.code.size()) std::abort();
  }
  for (const KeptBlock& block : parts.blocks) {
    (void)code.logged(block);
    for (std::uint32_t within = 0; within < block.size; ++within) (void)code.row(block, within);
  }
  for (std::uint64_t offset = 0; offset <= parts.code.size(); ++offset) (void)code.block_at(offset);
  (void)code.exits();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input{data, size};
  KeptParts parts;
  take(input, parts.modules);
  take(input, parts.code);
  take(input, parts.blocks);
  take(input, parts.rows);
  take(input, parts.branches);
  take(input, parts.exits);
  take(input, parts.pads);
  take(input, parts.bodies);
  const auto code = KeptCode::make(std::move(parts));
  if (!code) return 0;
  look_at(*code);
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(code->to_bytes("key"));
  const auto again = KeptCode::from_bytes(*bytes, "key", bytes, false);
  if (!again) std::abort();
  look_at(*again);
  (void)KeptCode::from_bytes({data, size}, "key", nullptr, false);
  return 0;
}
