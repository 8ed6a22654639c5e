// SPDX-License-Identifier: Apache-2.0
#include "decoder/variables/value_text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include <dwarf.h>
#include <fmt/format.h>

#include "arch/base/bytes.hpp"
#include "decoder/variables/type_facts.hpp"

namespace backtrail::decoder {
namespace {

constexpr unsigned kByteBits = 8;

/// A number of up to 64 bits with its width.
struct Number {
  std::uint64_t bits = 0;
  unsigned width = 0;

  [[nodiscard]] std::int64_t as_signed() const {
    const unsigned unused = 64 - width;
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }
};

std::string character_text(std::uint8_t c) {
  const bool plain = (c >= ' ' && c < 0x7f) || c == '\n' || c == '\t' || c == '\r' || c == 0;
  return plain ? " '" + escaped_character(c, '\'') + "'" : std::string{};
}

std::optional<std::string> float_text(Number number) {
  if (number.width == 32) {
    return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(number.bits)));
  }
  if (number.width == 64) return fmt::format("{}", std::bit_cast<double>(number.bits));
  return std::nullopt;
}

std::optional<std::string> base_text(Dwarf_Die* type, Number number) {
  const auto encoding = constant_attribute(type, DW_AT_encoding);
  if (!encoding) return std::nullopt;
  switch (*encoding) {
    case DW_ATE_boolean:
      if (number.bits <= 1) return number.bits == 1 ? "true" : "false";
      return std::to_string(number.bits);
    case DW_ATE_signed:
      return std::to_string(number.as_signed());
    case DW_ATE_unsigned:
    case DW_ATE_UTF:
      return std::to_string(number.bits);
    case DW_ATE_signed_char:
      return std::to_string(number.as_signed()) +
             character_text(static_cast<std::uint8_t>(number.bits));
    case DW_ATE_unsigned_char:
      return std::to_string(number.bits) + character_text(static_cast<std::uint8_t>(number.bits));
    case DW_ATE_float:
      return float_text(number);
    default:
      return std::nullopt;
  }
}

class Writer {
 public:
  explicit Writer(const ValueContext& context)
      : state_{context.state}, work_{context.work}, follow_references_{context.follow_references} {}

  std::optional<std::string> text(const Dwarf_Die& any_type, const ObjectBytes& object,
                                  std::size_t offset, unsigned depth) {
    auto type = plain_type(any_type);
    if (!type || !work_.step()) return std::nullopt;
    switch (dwarf_tag(&*type)) {
      case DW_TAG_base_type:
        if (const auto number = number_of(*type, object, offset)) return base_text(&*type, *number);
        return std::nullopt;
      case DW_TAG_enumeration_type:
        if (const auto number = number_of(*type, object, offset)) return enum_text(*type, *number);
        return std::nullopt;
      case DW_TAG_pointer_type:
        return pointer_text(*type, object, offset);
      case DW_TAG_reference_type:
      case DW_TAG_rvalue_reference_type:
        return reference_text(*type, object, offset, depth);
      case DW_TAG_structure_type:
      case DW_TAG_class_type:
      case DW_TAG_union_type:
        return struct_text(*type, object, offset, depth);
      case DW_TAG_array_type:
        return array_text(*type, object, offset, depth);
      default:
        return std::nullopt;
    }
  }

 private:
  static std::optional<std::uint64_t> bits_of(const ObjectBytes& object, std::size_t offset,
                                              std::uint64_t size) {
    std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
    if (size == 0 || size > bytes.size() || offset > object.bytes.size() ||
        size > object.bytes.size() - offset) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (!object.known[offset + i]) return std::nullopt;
      bytes[i] = object.bytes[offset + i];
    }
    return load_le<std::uint64_t>(bytes, 0);
  }
  std::optional<Number> number_of(const Dwarf_Die& type, const ObjectBytes& object,
                                  std::size_t offset) {
    const auto size = type_size(type, work_);
    if (!size) return std::nullopt;
    const auto bits = bits_of(object, offset, *size);
    if (!bits) return std::nullopt;
    return Number{*bits, kByteBits * static_cast<unsigned>(*size)};
  }

  std::string enum_text(Dwarf_Die type, Number number) {
    std::string out;
    for_each_child(type, work_, [&](Dwarf_Die child) {
      Dwarf_Attribute attribute;
      Dwarf_Word value = 0;
      if (dwarf_tag(&child) != DW_TAG_enumerator) return true;
      if (dwarf_attr(&child, DW_AT_const_value, &attribute) == nullptr) return true;
      if (dwarf_formudata(&attribute, &value) != 0) return true;
      const unsigned unused = 64 - number.width;
      if (value << unused == number.bits << unused) out = die_name(&child);
      return out.empty();
    });
    if (!out.empty()) return out;
    auto based = type_of(&type);
    const bool is_unsigned =
        based && constant_attribute(&*based, DW_AT_encoding) == std::uint64_t{DW_ATE_unsigned};
    return is_unsigned ? std::to_string(number.bits) : std::to_string(number.as_signed());
  }

  /// Returns the target of a pointer type if it is a character type.
  static bool points_to_characters(Dwarf_Die type) {
    const auto target = type_of(&type);
    auto plain = target ? plain_type(*target) : std::nullopt;
    return plain && is_character(*plain);
  }
  static bool is_character(Dwarf_Die type) {
    if (dwarf_tag(&type) != DW_TAG_base_type) return false;
    if (constant_attribute(&type, DW_AT_byte_size) != std::uint64_t{1}) return false;
    const auto encoding = constant_attribute(&type, DW_AT_encoding);
    const std::uint64_t kind = encoding.value_or(0);
    return kind == DW_ATE_signed_char || kind == DW_ATE_unsigned_char;
  }

  std::optional<std::string> pointer_text(Dwarf_Die type, const ObjectBytes& object,
                                          std::size_t offset) {
    const auto address = bits_of(object, offset, sizeof(std::uint64_t));
    if (!address) return std::nullopt;
    std::string out = fmt::format("{:#x}", *address);
    if (*address == 0 || !points_to_characters(type)) return out;
    std::array<std::uint8_t, kMostCharacters + 1> bytes{};
    const std::size_t got = state_.memory(TraceeAddr{*address}, bytes);
    return got == 0 ? out : out + " " + string_text(std::span{bytes}.first(got), ~0ULL);
  }

  /// Writes characters up to the first 0.
  /// @param most  Length of the array; there may be more than `bytes`.
  static std::string string_text(std::span<const std::uint8_t> bytes, std::uint64_t most) {
    const auto end = std::find(bytes.begin(), bytes.end(), 0);
    const auto count = static_cast<std::size_t>(end - bytes.begin());
    // Without a 0 the string goes on as far as the array does.
    return counted_text(bytes.first(count), end != bytes.end() ? count : most);
  }

  /// Writes the beginning of a string. @param length  Its whole length.
  static std::string counted_text(std::span<const std::uint8_t> bytes, std::uint64_t length) {
    std::size_t count = std::min(bytes.size(), kMostCharacters);
    const bool is_cut = count < length;
    // A character of UTF-8 is not cut in two.
    for (int i = 0;
         is_cut && i < 3 && count > 0 && count < bytes.size() && (bytes[count] & 0xc0U) == 0x80U;
         ++i) {
      --count;
    }
    std::string out = "\"";
    for (const std::uint8_t c : bytes.first(count)) out += escaped_character(c, '"');
    return out + (is_cut ? "\"..." : "\"");
  }

  std::optional<std::string> reference_text(Dwarf_Die type, const ObjectBytes& object,
                                            std::size_t offset, unsigned depth) {
    const auto address = bits_of(object, offset, sizeof(std::uint64_t));
    if (!address) return std::nullopt;
    std::string out = fmt::format("@{:#x}", *address);
    const auto target = type_of(&type);
    const auto size = target ? type_size(*target, work_) : std::nullopt;
    if (!size || depth >= kDeepestValue || !follow_references_) return out;
    const ObjectBytes referred = read_object(
        {{.kind = LocationPiece::Kind::kMemory, .value = *address, .bytes = {}}},
        static_cast<std::size_t>(std::min<std::uint64_t>(*size, kMostObjectBytes)), state_);
    return out + ": " + text(*target, referred, 0, depth + 1).value_or("?");
  }

  /// Collects the parts of a struct or array; "?" alone is not worth showing.
  struct Parts {
    std::string text;
    std::size_t count = 0;
    bool any_known = false;

    void add(const std::string& name, const std::optional<std::string>& value) {
      text += (count == 0 ? "" : ", ") + name + (name.empty() ? "" : "=") + value.value_or("?");
      any_known = any_known || value.has_value();
      ++count;
    }
    [[nodiscard]] bool full() const { return count == kMostMembers || text.size() > kLongestValue; }
    void cut() { text += ", ..."; }
    [[nodiscard]] std::optional<std::string> finish() const {
      if (count != 0 && !any_known) return std::nullopt;
      return "{" + text + "}";
    }
  };

  /// Returns true for the inner classes of the C++ library, whose names are reserved.
  static bool is_internal(Dwarf_Die type) {
    const std::string name = die_name(&type);
    return name.size() > 1 && name[0] == '_' && name[1] >= 'A' && name[1] <= 'Z';
  }

  std::optional<std::string> struct_text(Dwarf_Die type, const ObjectBytes& object,
                                         std::size_t offset, unsigned depth) {
    if (has_flag(&type, DW_AT_declaration)) return std::nullopt;
    if (auto string = standard_string(type, object, offset)) return string;
    if (depth >= kDeepestValue || is_internal(type)) return "{...}";
    Parts parts;
    bool whole = true;
    for_each_child(type, work_, [&](Dwarf_Die child) {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_variant_part) whole = false;
      const bool is_base = tag == DW_TAG_inheritance;
      if (tag != DW_TAG_member && !is_base) return true;
      if (has_flag(&child, DW_AT_external) || has_flag(&child, DW_AT_declaration)) return true;
      if (has_flag(&child, DW_AT_artificial)) return true;
      if (parts.full()) {
        parts.cut();
        return false;
      }
      const auto its_type = type_of(&child);
      std::string name = is_base && its_type ? "<" + type_name(*its_type) + ">" : die_name(&child);
      parts.add(name,
                its_type ? member_text(child, *its_type, object, offset, depth) : std::nullopt);
      return true;
    });
    return whole ? parts.finish() : std::nullopt;
  }

  /// Returns a member of a struct that has a constant place; nullopt if there is none of the name.
  std::optional<Dwarf_Die> find_member(const Dwarf_Die& type, std::string_view name) {
    std::optional<Dwarf_Die> out;
    for_each_child(type, work_, [&](Dwarf_Die child) {
      if (dwarf_tag(&child) == DW_TAG_member && die_name(&child) == name &&
          constant_attribute(&child, DW_AT_data_member_location)) {
        out = child;
      }
      return !out;
    });
    return out;
  }

  /// Returns the text of a std::string of libstdc++; nullopt for everything else.
  std::optional<std::string> standard_string(Dwarf_Die type, const ObjectBytes& object,
                                             std::size_t offset) {
    if (!die_name(&type).starts_with("basic_string<char,")) return std::nullopt;
    auto holder = find_member(type, "_M_dataplus");
    auto length = find_member(type, "_M_string_length");
    const auto its_type = holder ? type_of(&*holder) : std::nullopt;
    auto pointer = its_type ? find_member(*its_type, "_M_p") : std::nullopt;
    if (!length || !pointer) return std::nullopt;
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    const auto place = [](Dwarf_Die* member) {
      return constant_attribute(member, DW_AT_data_member_location).value_or(kMostObjectBytes);
    };
    const auto address = bits_of(object, offset + place(&*holder) + place(&*pointer), kWord);
    const auto count = bits_of(object, offset + place(&*length), kWord);
    if (!address || !count) return std::nullopt;
    std::array<std::uint8_t, kMostCharacters + 1> bytes{};
    const std::size_t most = std::min<std::uint64_t>(*count, bytes.size());
    if (state_.memory(TraceeAddr{*address}, std::span{bytes}.first(most)) != most) {
      return std::nullopt;
    }
    return counted_text(std::span{bytes}.first(most), *count);
  }

  std::optional<std::string> member_text(Dwarf_Die member, const Dwarf_Die& type,
                                         const ObjectBytes& object, std::size_t offset,
                                         unsigned depth) {
    if (constant_attribute(&member, DW_AT_virtuality).value_or(0) != 0) return std::nullopt;
    if (constant_attribute(&member, DW_AT_bit_size)) {
      return bit_field_text(member, type, object, offset);
    }
    Dwarf_Attribute attribute;
    std::uint64_t within = 0;
    if (dwarf_attr(&member, DW_AT_data_member_location, &attribute) != nullptr) {
      const auto constant = constant_attribute(&member, DW_AT_data_member_location);
      if (!constant) return std::nullopt;
      within = *constant;
    }
    if (within > kMostObjectBytes) return std::nullopt;
    return text(type, object, offset + within, depth + 1);
  }

  /// Returns the place of a bit field's lowest bit in its struct.
  std::optional<std::uint64_t> first_bit(Dwarf_Die member, const Dwarf_Die& type) {
    if (const auto first = constant_attribute(&member, DW_AT_data_bit_offset)) return first;
    // DWARF 2 and 3 count from the highest bit of the unit that the field is stored in.
    auto unit = constant_attribute(&member, DW_AT_byte_size);
    if (!unit) unit = type_size(type, work_);
    const auto width = constant_attribute(&member, DW_AT_bit_size);
    const auto from_top = constant_attribute(&member, DW_AT_bit_offset);
    const auto at = constant_attribute(&member, DW_AT_data_member_location);
    if (!unit || !width || !from_top || !at || *unit > sizeof(std::uint64_t)) return std::nullopt;
    if (*from_top > 64 || *width > 64 || *at > kMostObjectBytes) return std::nullopt;
    const std::uint64_t bits = kByteBits * *unit;
    if (*from_top + *width > bits) return std::nullopt;
    return kByteBits * *at + bits - *from_top - *width;
  }

  std::optional<std::string> bit_field_text(Dwarf_Die member, const Dwarf_Die& type,
                                            const ObjectBytes& object, std::size_t offset) {
    const auto first = first_bit(member, type);
    const auto width = constant_attribute(&member, DW_AT_bit_size);
    if (!first || !width || *width == 0 || *first > kByteBits * kMostObjectBytes) {
      return std::nullopt;
    }
    const unsigned shift = *first % kByteBits;
    if (*width + shift > 64) return std::nullopt;
    const auto bits =
        bits_of(object, offset + *first / kByteBits, (*width + shift + kByteBits - 1) / kByteBits);
    auto plain = plain_type(type);
    if (!bits || !plain) return std::nullopt;
    const auto used = static_cast<unsigned>(*width);
    const Number number{*bits >> shift & arch::cpu::values::low_bits(used), used};
    if (dwarf_tag(&*plain) == DW_TAG_enumeration_type) return enum_text(*plain, number);
    return dwarf_tag(&*plain) == DW_TAG_base_type ? base_text(&*plain, number) : std::nullopt;
  }

  std::optional<std::string> array_text(Dwarf_Die type, const ObjectBytes& object,
                                        std::size_t offset, unsigned depth) {
    const auto counts = array_counts(type, work_);
    const auto element = type_of(&type);
    const auto size = element ? type_size(*element, work_) : std::nullopt;
    if (counts.empty() || !size || *size == 0) return std::nullopt;
    return row_text({counts, *element, *size, object}, 0, offset, depth);
  }
  struct Array {
    const std::vector<std::uint64_t>& counts;
    const Dwarf_Die& element;
    std::uint64_t size;
    const ObjectBytes& object;
  };
  std::optional<std::string> row_text(const Array& array, std::size_t dimension, std::size_t offset,
                                      unsigned depth) {
    const std::uint64_t count = array.counts[dimension];
    const bool innermost = dimension + 1 == array.counts.size();
    auto plain = plain_type(array.element);
    if (innermost && plain && is_character(*plain)) {
      return characters_text(array.object, offset, count);
    }
    if (depth >= kDeepestValue) return "{...}";
    std::uint64_t step = array.size;
    for (std::size_t i = dimension + 1; i < array.counts.size(); ++i) {
      if (__builtin_mul_overflow(step, array.counts[i], &step)) return std::nullopt;
    }
    Parts parts;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (parts.full() || i * step > kMostObjectBytes) {
        parts.cut();
        break;
      }
      const std::size_t at = offset + i * step;
      parts.add({}, innermost ? text(array.element, array.object, at, depth + 1)
                              : row_text(array, dimension + 1, at, depth + 1));
    }
    return parts.finish();
  }

  static std::optional<std::string> characters_text(const ObjectBytes& object, std::size_t offset,
                                                    std::uint64_t count) {
    if (offset > object.bytes.size()) return std::nullopt;
    std::size_t got = 0;
    const std::size_t most =
        std::min<std::uint64_t>({count, object.bytes.size() - offset, kMostCharacters + 1});
    while (got < most && object.known[offset + got]) ++got;
    if (got == 0) return std::nullopt;
    return string_text(std::span{object.bytes}.subspan(offset, got), count);
  }

  FrameState& state_;
  WorkLimit& work_;
  bool follow_references_;
};

}  // namespace

std::string escaped_character(std::uint8_t c, char quote) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    case 0:
      return "\\0";
    default:
      break;
  }
  if (c == '\\' || c == static_cast<std::uint8_t>(quote)) return {'\\', static_cast<char>(c)};
  if (c < ' ' || c == 0x7f) return fmt::format("\\x{:02x}", c);
  return {static_cast<char>(c)};
}

std::optional<std::string> value_text(const Dwarf_Die& type, const ObjectBytes& object,
                                      const ValueContext& context) {
  auto out = Writer{context}.text(type, object, 0, 0);
  if (!out || out->size() <= kLongestValue) return out;
  std::size_t end = kLongestValue;
  while (end > 0 && (static_cast<unsigned char>((*out)[end]) & 0xc0U) == 0x80U) --end;
  return out->substr(0, end) + "...";
}

}  // namespace backtrail::decoder
