// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/target_xml.hpp"

#include <array>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "arch/x86/register_table.hpp"

namespace backtrail::arch::x86 {
namespace {

struct FlagField {
  const char* name;
  unsigned bit;
};
/// Source: SDM vol. 1, "EFLAGS Register". Bit 1 is always set and has no name.
constexpr std::array<FlagField, 17> kEflagsFields{{
    {"CF", 0},
    {"", 1},
    {"PF", 2},
    {"AF", 4},
    {"ZF", 6},
    {"SF", 7},
    {"TF", 8},
    {"IF", 9},
    {"DF", 10},
    {"OF", 11},
    {"NT", 14},
    {"RF", 16},
    {"VM", 17},
    {"AC", 18},
    {"VIF", 19},
    {"VIP", 20},
    {"ID", 21},
}};
/// Source: SDM vol. 1, "MXCSR Control and Status Register".
constexpr std::array<FlagField, 14> kMxcsr{{
    {"IE", 0},
    {"DE", 1},
    {"ZE", 2},
    {"OE", 3},
    {"UE", 4},
    {"PE", 5},
    {"DAZ", 6},
    {"IM", 7},
    {"DM", 8},
    {"ZM", 9},
    {"OM", 10},
    {"UM", 11},
    {"PM", 12},
    {"FZ", 15},
}};

struct Vector {
  const char* id;
  const char* type;
  unsigned count;
  const char* field;  ///< Name of the member in the union.
};
constexpr std::array<Vector, 8> kVec128{{
    {"v8bf16", "bfloat16", 8, "v8_bfloat16"},
    {"v8h", "ieee_half", 8, "v8_half"},
    {"v4f", "ieee_single", 4, "v4_float"},
    {"v2d", "ieee_double", 2, "v2_double"},
    {"v16i8", "int8", 16, "v16_int8"},
    {"v8i16", "int16", 8, "v8_int16"},
    {"v4i32", "int32", 4, "v4_int32"},
    {"v2i64", "int64", 2, "v2_int64"},
}};

struct BitRange {
  const char* name;
  unsigned start;
  unsigned end;
};

class Document {
 public:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::vformat(format, fmt::make_format_args(args...));
    text_ += '\n';
  }

  void vector(const char* id, const char* type, unsigned count) {
    line(R"(<vector id="{}" type="{}" count="{}"/>)", id, type, count);
  }

  void field(const char* name, const char* type) {
    line(R"(<field name="{}" type="{}"/>)", name, type);
  }

  void flags(const char* id, std::span<const FlagField> fields) {
    line(R"(<flags id="{}" size="4">)", id);
    for (const FlagField& f : fields) {
      line(R"(<field name="{}" start="{}" end="{}" type="bool"/>)", f.name, f.bit, f.bit);
    }
    line("</flags>");
  }

  void vec128() {
    for (const Vector& v : kVec128) vector(v.id, v.type, v.count);
    line(R"(<union id="vec128">)");
    for (const Vector& v : kVec128) field(v.field, v.id);
    field("uint128", "uint128");
    line("</union>");
  }

  /// Adds an 8-byte structure `id` of bit ranges, and a union `union_id` of it and a pointer.
  void bit_struct(const char* id, std::span<const BitRange> ranges, const char* union_id,
                  const char* union_field) {
    line(R"(<struct id="{}" size="8">)", id);
    for (const BitRange& r : ranges) {
      line(R"(<field name="{}" start="{}" end="{}" type="uint64"/>)", r.name, r.start, r.end);
    }
    line("</struct>");
    line(R"(<union id="{}">)", union_id);
    field("raw", "data_ptr");
    field(union_field, id);
    line("</union>");
  }

  void reg(const GdbRegister& r, std::size_t number) {
    const std::string group = r.group.empty() ? "" : fmt::format(R"( group="{}")", r.group);
    line(R"(<reg name="{}" bitsize="{}" type="{}" regnum="{}"{}/>)", r.name, r.bits, r.type, number,
         group);
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Source: SDM vol. 1, "Configuration of Intel MPX State".
void mpx_types(Document& doc, Isa isa) {
  const unsigned last_bit = isa == Isa::kAmd64 ? 63 : 31;
  doc.line(R"(<struct id="br128">)");
  doc.field("lbound", "uint64");
  doc.field("ubound_raw", "uint64");
  doc.line("</struct>");
  const std::array<BitRange, 2> status{{{"bde", 2, last_bit}, {"error", 0, 1}}};
  doc.bit_struct("_bndstatus", status, "status", "status");
  const std::array<BitRange, 4> config{
      {{"base", 12, last_bit}, {"reserved", 2, 11}, {"preserved", 1, 1}, {"enabled", 0, 0}}};
  doc.bit_struct("_bndcfgu", config, "cfgu", "config");
}

/// Adds the types of a feature: a type may be used only in the feature that declares it.
void types_of(Document& doc, Isa isa, std::string_view feature) {
  if (feature == kFeatureCore) {
    doc.flags("i386_eflags", kEflagsFields);
  } else if (feature == kFeatureSse) {
    doc.vec128();
    doc.flags("i386_mxcsr", kMxcsr);
  } else if (feature == kFeatureMpx) {
    mpx_types(doc, isa);
  } else if (feature == kFeatureAvx512) {
    if (isa == Isa::kAmd64) doc.vec128();
    doc.vector("v2ui128", "uint128", 2);
  }
}

}  // namespace

std::string make_target_xml(Isa isa, std::span<const GdbRegister> registers) {
  Document doc;
  doc.line(R"(<?xml version="1.0"?>)");
  doc.line(R"(<!DOCTYPE target SYSTEM "gdb-target.dtd">)");
  doc.line("<target>");
  doc.line("<architecture>{}</architecture>", isa == Isa::kAmd64 ? "i386:x86-64" : "i386");
  doc.line("<osabi>GNU/Linux</osabi>");
  std::string_view feature;
  for (std::size_t i = 0; i < registers.size(); ++i) {
    if (registers[i].feature != feature) {
      if (!feature.empty()) doc.line("</feature>");
      feature = registers[i].feature;
      doc.line(R"(<feature name="{}">)", feature);
      types_of(doc, isa, feature);
    }
    doc.reg(registers[i], i);
  }
  if (!feature.empty()) doc.line("</feature>");
  doc.line("</target>");
  return doc.take();
}

}  // namespace backtrail::arch::x86
