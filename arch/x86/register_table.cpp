// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/register_table.hpp"

#include <array>
#include <span>

#include <fmt/format.h>

namespace backtrail::arch::x86 {
namespace {

struct UserEntry {
  const char* name;
  std::uint32_t bits;
  const char* type;
  UserReg source;
};

constexpr std::array<UserEntry, 24> kAmd64General{{
    {"rax", 64, "int64", UserReg::kRax},    {"rbx", 64, "int64", UserReg::kRbx},
    {"rcx", 64, "int64", UserReg::kRcx},    {"rdx", 64, "int64", UserReg::kRdx},
    {"rsi", 64, "int64", UserReg::kRsi},    {"rdi", 64, "int64", UserReg::kRdi},
    {"rbp", 64, "data_ptr", UserReg::kRbp}, {"rsp", 64, "data_ptr", UserReg::kRsp},
    {"r8", 64, "int64", UserReg::kR8},      {"r9", 64, "int64", UserReg::kR9},
    {"r10", 64, "int64", UserReg::kR10},    {"r11", 64, "int64", UserReg::kR11},
    {"r12", 64, "int64", UserReg::kR12},    {"r13", 64, "int64", UserReg::kR13},
    {"r14", 64, "int64", UserReg::kR14},    {"r15", 64, "int64", UserReg::kR15},
    {"rip", 64, "code_ptr", UserReg::kRip}, {"eflags", 32, "i386_eflags", UserReg::kEflags},
    {"cs", 32, "int32", UserReg::kCs},      {"ss", 32, "int32", UserReg::kSs},
    {"ds", 32, "int32", UserReg::kDs},      {"es", 32, "int32", UserReg::kEs},
    {"fs", 32, "int32", UserReg::kFs},      {"gs", 32, "int32", UserReg::kGs},
}};

constexpr std::array<UserEntry, 16> kI386General{{
    {"eax", 32, "int32", UserReg::kRax},
    {"ecx", 32, "int32", UserReg::kRcx},
    {"edx", 32, "int32", UserReg::kRdx},
    {"ebx", 32, "int32", UserReg::kRbx},
    {"esp", 32, "data_ptr", UserReg::kRsp},
    {"ebp", 32, "data_ptr", UserReg::kRbp},
    {"esi", 32, "int32", UserReg::kRsi},
    {"edi", 32, "int32", UserReg::kRdi},
    {"eip", 32, "code_ptr", UserReg::kRip},
    {"eflags", 32, "i386_eflags", UserReg::kEflags},
    {"cs", 32, "int32", UserReg::kCs},
    {"ss", 32, "int32", UserReg::kSs},
    {"ds", 32, "int32", UserReg::kDs},
    {"es", 32, "int32", UserReg::kEs},
    {"fs", 32, "int32", UserReg::kFs},
    {"gs", 32, "int32", UserReg::kGs},
}};

constexpr std::array<const char*, 8> kX87ControlNames{"fctrl", "fstat", "ftag",  "fiseg",
                                                      "fioff", "foseg", "fooff", "fop"};

/// Appends registers and assigns their offsets.
class TableBuilder {
 public:
  void feature(const char* name) { feature_ = name; }

  void user(const UserEntry& entry) {
    RegisterSource source;
    source.kind = RegisterSource::Kind::kUser;
    source.user = entry.source;
    add(entry.name, entry.bits, entry.type, "", source);
  }

  void x87_control(std::size_t index) {
    RegisterSource source;
    source.kind = RegisterSource::Kind::kX87Control;
    source.control = static_cast<X87Control>(index);
    add(kX87ControlNames[index], 32, "int", "float", source);
  }

  void mxcsr() {
    RegisterSource source;
    source.kind = RegisterSource::Kind::kMxcsr;
    add("mxcsr", 32, "i386_mxcsr", "vector", source);
  }

  /// Registers PREFIX<first>SUFFIX to PREFIX<last>SUFFIX, `stride` bytes apart in `component`.
  struct Run {
    const char* prefix;
    const char* suffix;
    unsigned first;
    unsigned last;
    std::uint32_t bits;
    const char* type;
    XsaveComponent component;
    std::uint32_t offset;  ///< Offset of the first one.
    std::uint32_t stride;
  };
  void run(const Run& r) {
    for (unsigned i = r.first; i <= r.last; ++i) {
      one(fmt::format("{}{}{}", r.prefix, i, r.suffix), r.bits, r.type, r.component,
          r.offset + r.stride * (i - r.first));
    }
  }

  void one(std::string name, std::uint32_t bits, const char* type, XsaveComponent component,
           std::uint32_t offset) {
    RegisterSource source;
    source.kind = RegisterSource::Kind::kComponent;
    source.component = component;
    source.offset = offset;
    add(std::move(name), bits, type, "", source);
  }

  std::vector<RegisterEntry> take() { return std::move(table_); }

 private:
  void add(std::string name, std::uint32_t bits, const char* type, const char* group,
           const RegisterSource& source) {
    table_.push_back({{std::move(name), bits, type, group, feature_, offset_}, source});
    offset_ += bits / 8;
  }

  std::vector<RegisterEntry> table_;
  const char* feature_ = "";
  std::size_t offset_ = 0;
};

void add_core(TableBuilder& table, Isa isa) {
  table.feature(kFeatureCore);
  const std::span<const UserEntry> general =
      isa == Isa::kAmd64 ? std::span<const UserEntry>{kAmd64General} : kI386General;
  for (const UserEntry& entry : general) table.user(entry);
  table.run({"st", "", 0, 7, 80, "i387_ext", XsaveComponent::kX87, 32, 16});
  for (std::size_t i = 0; i < kX87ControlNames.size(); ++i) table.x87_control(i);
}

void add_avx512(TableBuilder& table, Isa isa, unsigned last_vector) {
  table.feature(kFeatureAvx512);
  const bool amd64 = isa == Isa::kAmd64;
  if (amd64) {
    table.run({"xmm", "", 16, 31, 128, "vec128", XsaveComponent::kHi16Zmm, 0, 64});
    table.run({"ymm", "h", 16, 31, 128, "uint128", XsaveComponent::kHi16Zmm, 16, 64});
  }
  table.run({"k", "", 0, 7, 64, "uint64", XsaveComponent::kOpmask, 0, 8});
  table.run({"zmm", "h", 0, last_vector, 256, "v2ui128", XsaveComponent::kZmmHi256, 0, 32});
  if (amd64) table.run({"zmm", "h", 16, 31, 256, "v2ui128", XsaveComponent::kHi16Zmm, 32, 64});
}

}  // namespace

std::vector<RegisterEntry> make_register_table(Isa isa, const XsaveLayout& layout) {
  const bool amd64 = isa == Isa::kAmd64;
  const unsigned last_vector = amd64 ? 15 : 7;
  TableBuilder table;
  add_core(table, isa);
  table.feature(kFeatureSse);
  table.run({"xmm", "", 0, last_vector, 128, "vec128", XsaveComponent::kSse, 0, 16});
  table.mxcsr();
  table.feature(kFeatureLinux);
  table.user({amd64 ? "orig_rax" : "orig_eax", amd64 ? 64U : 32U, "int", UserReg::kOrigRax});
  if (amd64) {
    table.feature(kFeatureSegments);
    table.user({"fs_base", 64, "int", UserReg::kFsBase});
    table.user({"gs_base", 64, "int", UserReg::kGsBase});
  }
  if (layout.has(XsaveComponent::kAvx)) {
    table.feature(kFeatureAvx);
    table.run({"ymm", "h", 0, last_vector, 128, "uint128", XsaveComponent::kAvx, 0, 16});
  }
  if (layout.has(XsaveComponent::kBndRegs) && layout.has(XsaveComponent::kBndCsr)) {
    table.feature(kFeatureMpx);
    table.run({"bnd", "raw", 0, 3, 128, "br128", XsaveComponent::kBndRegs, 0, 16});
    table.one("bndcfgu", 64, "cfgu", XsaveComponent::kBndCsr, 0);
    table.one("bndstatus", 64, "status", XsaveComponent::kBndCsr, 8);
  }
  if (layout.has(XsaveComponent::kOpmask) && layout.has(XsaveComponent::kZmmHi256) &&
      layout.has(XsaveComponent::kHi16Zmm)) {
    add_avx512(table, isa, last_vector);
  }
  if (layout.has(XsaveComponent::kPkru)) {
    table.feature(kFeaturePkeys);
    table.one("pkru", 32, "uint32", XsaveComponent::kPkru, 0);
  }
  return table.take();
}

}  // namespace backtrail::arch::x86
