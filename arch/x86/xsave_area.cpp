// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/xsave_area.hpp"

#include <algorithm>

namespace backtrail::arch::x86 {
namespace {

constexpr std::size_t kFctrlAt = 0;
constexpr std::size_t kFstatAt = 2;
constexpr std::size_t kAbridgedTagAt = 4;
constexpr std::size_t kFopAt = 6;
constexpr std::size_t kFioffAt = 8;
constexpr std::size_t kFisegAt = 12;
constexpr std::size_t kFooffAt = 16;
constexpr std::size_t kFosegAt = 20;
constexpr std::size_t kMxcsrAt = 24;
constexpr std::size_t kMxcsrMaskAt = 28;
constexpr std::size_t kMxcsrEnd = 32;
constexpr std::size_t kStAt = 32;
constexpr std::size_t kStBytes = 16;
constexpr std::size_t kXstateBvAt = kFxsaveBytes;

constexpr std::uint32_t kInitialFctrl = 0x37f;
constexpr std::uint32_t kInitialMxcsr = 0x1f80;
/// Used if MXCSR_MASK reads 0. Source: SDM vol. 1, "MXCSR Control and Status Register".
constexpr std::uint32_t kDefaultMxcsrMask = 0xffbf;
constexpr std::uint16_t kFopMask = 0x7ff;

enum Tag : unsigned { kValid = 0, kZero = 1, kSpecial = 2, kEmpty = 3 };

std::uint64_t load(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

bool is_legacy(XsaveComponent c) {
  return c == XsaveComponent::kX87 || c == XsaveComponent::kSse;
}

bool component_in_use(std::span<const std::uint8_t> area, XsaveComponent c) {
  if (area.size() < kFxsaveBytes + kXsaveHeaderBytes) return is_legacy(c);
  const std::uint64_t xstate_bv = load(area.subspan(kXstateBvAt, 8));
  return ((xstate_bv >> static_cast<unsigned>(c)) & 1U) != 0;
}

/// MXCSR belongs to SSE and AVX: the stored value is valid if either is in use.
bool mxcsr_in_use(std::span<const std::uint8_t> area) {
  return component_in_use(area, XsaveComponent::kSse) ||
         component_in_use(area, XsaveComponent::kAvx);
}

bool fits(const XsaveLayout& layout, std::size_t area_bytes, XsaveComponent c, std::size_t offset,
          std::size_t bytes) {
  return layout.has(c) && offset + bytes <= layout.bytes(c) &&
         layout.at(c) + offset + bytes <= area_bytes;
}

/// Source: SDM vol. 1, "x87 FPU Tag Word", "Data Types".
unsigned tag_of(std::span<const std::uint8_t> st) {
  const std::uint64_t mantissa = load(st.first(8));
  const auto exponent = static_cast<unsigned>(load(st.subspan(8, 2)) & 0x7fff);
  if (exponent == 0x7fff) return kSpecial;
  if (exponent == 0) return mantissa == 0 ? kZero : kSpecial;
  return (mantissa >> 63) != 0 ? kValid : kSpecial;
}

std::size_t x87_offset(X87Control control) {
  switch (control) {
    case X87Control::kFctrl:
      return kFctrlAt;
    case X87Control::kFstat:
      return kFstatAt;
    case X87Control::kFtag:
      return kAbridgedTagAt;
    case X87Control::kFiseg:
      return kFisegAt;
    case X87Control::kFioff:
      return kFioffAt;
    case X87Control::kFoseg:
      return kFosegAt;
    case X87Control::kFooff:
      return kFooffAt;
    case X87Control::kFop:
      return kFopAt;
  }
  return kFctrlAt;
}

std::size_t x87_bytes(X87Control control, Isa isa) {
  switch (control) {
    case X87Control::kFioff:
    case X87Control::kFooff:
      return 4;
    case X87Control::kFiseg:
    case X87Control::kFoseg:
      return isa == Isa::kAmd64 ? 4 : 2;
    default:
      return 2;
  }
}

}  // namespace

bool XsaveReader::in_use(XsaveComponent c) const {
  return component_in_use(area_, c);
}

void XsaveReader::read(XsaveComponent c, std::size_t offset, std::span<std::uint8_t> out) const {
  if (!in_use(c) || !fits(layout_, area_.size(), c, offset, out.size())) {
    std::fill(out.begin(), out.end(), std::uint8_t{0});
    return;
  }
  const auto bytes = area_.subspan(layout_.at(c) + offset, out.size());
  std::copy(bytes.begin(), bytes.end(), out.begin());
}

std::uint64_t XsaveReader::legacy(std::size_t offset, std::size_t bytes) const {
  return offset + bytes <= area_.size() ? load(area_.subspan(offset, bytes)) : 0;
}

std::uint32_t XsaveReader::mxcsr() const {
  if (!mxcsr_in_use(area_) || area_.size() < kMxcsrEnd) return kInitialMxcsr;
  return static_cast<std::uint32_t>(legacy(kMxcsrAt, 4));
}

std::uint16_t XsaveReader::full_tag_word() const {
  const auto abridged = static_cast<unsigned>(legacy(kAbridgedTagAt, 1));
  const auto top = static_cast<unsigned>((legacy(kFstatAt, 2) >> 11) & 7);
  unsigned word = 0;
  for (unsigned physical = 0; physical < 8; ++physical) {
    unsigned tag = kEmpty;
    if (((abridged >> physical) & 1U) != 0) {
      const std::size_t at = kStAt + kStBytes * ((physical - top) & 7U);
      tag = at + kStBytes <= area_.size() ? tag_of(area_.subspan(at, kStBytes)) : kEmpty;
    }
    word |= tag << (2 * physical);
  }
  return static_cast<std::uint16_t>(word);
}

std::uint32_t XsaveReader::x87(X87Control control, Isa isa) const {
  const bool present = in_use(XsaveComponent::kX87) && area_.size() >= kMxcsrAt;
  if (control == X87Control::kFctrl && !present) return kInitialFctrl;
  if (control == X87Control::kFtag) return present ? full_tag_word() : 0xffff;
  if (!present) return 0;
  const auto value =
      static_cast<std::uint32_t>(legacy(x87_offset(control), x87_bytes(control, isa)));
  return control == X87Control::kFop ? value & kFopMask : value;
}

void XsaveWriter::put(std::size_t offset, std::size_t bytes, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes; ++i) {
    area_[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

bool XsaveWriter::begin_use(XsaveComponent c) {
  if (!fits(layout_, area_.size(), c, 0, layout_.bytes(c))) return false;
  if (component_in_use(area_, c)) return true;
  if (area_.size() < kFxsaveBytes + kXsaveHeaderBytes) return false;

  const bool shares_mxcsr = c == XsaveComponent::kSse || c == XsaveComponent::kAvx;
  if (shares_mxcsr && !mxcsr_in_use(area_)) put(kMxcsrAt, 4, kInitialMxcsr);
  if (c == XsaveComponent::kX87) {
    // Everything but MXCSR and its mask, which lie in between.
    std::fill_n(area_.begin(), kMxcsrAt, std::uint8_t{0});
    std::fill_n(area_.begin() + kStAt, layout_.bytes(c) - kStAt, std::uint8_t{0});
    put(kFctrlAt, 2, kInitialFctrl);
  } else {
    std::fill_n(area_.begin() + layout_.at(c), layout_.bytes(c), std::uint8_t{0});
  }
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(c);
  put(kXstateBvAt, 8, load(area_.subspan(kXstateBvAt, 8)) | bit);
  return true;
}

bool XsaveWriter::write(XsaveComponent c, std::size_t offset, std::span<const std::uint8_t> value) {
  if (!fits(layout_, area_.size(), c, offset, value.size()) || !begin_use(c)) return false;
  std::copy(value.begin(), value.end(),
            area_.begin() + static_cast<std::ptrdiff_t>(layout_.at(c) + offset));
  return true;
}

bool XsaveWriter::set_mxcsr(std::uint32_t value) {
  if (!begin_use(XsaveComponent::kSse)) return false;
  const auto mask = static_cast<std::uint32_t>(load(area_.subspan(kMxcsrMaskAt, 4)));
  put(kMxcsrAt, 4, value & (mask == 0 ? kDefaultMxcsrMask : mask));
  return true;
}

bool XsaveWriter::set_x87(X87Control control, Isa isa, std::uint32_t value) {
  if (!begin_use(XsaveComponent::kX87)) return false;
  if (control == X87Control::kFtag) {
    unsigned abridged = 0;
    for (unsigned i = 0; i < 8; ++i) {
      if (((value >> (2 * i)) & 3U) != kEmpty) abridged |= 1U << i;
    }
    put(kAbridgedTagAt, 1, abridged);
    return true;
  }
  put(x87_offset(control), x87_bytes(control, isa),
      control == X87Control::kFop ? value & kFopMask : value);
  return true;
}

}  // namespace backtrail::arch::x86
