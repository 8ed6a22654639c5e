// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/code_places.hpp"

#include <array>
#include <span>

#include <fmt/format.h>

#include "arch/disassemble.hpp"
#include "arch/insn.hpp"

namespace backtrail::decoder {

ReportPlace CodePlaces::place(TraceeAddr address) {
  ReportPlace out{address, symbols_.module_place(address), {}};
  for (const CodeFrame& frame : symbols_.frames_at(address)) {
    out.frames.push_back({symbols_.text(frame.name), symbols_.text(frame.line.file),
                          frame.line.line, frame.inlined});
  }
  return out;
}

std::string CodePlaces::instruction(TraceeAddr address) {
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t count = code_.read_code(address, bytes);
  return arch::disassemble(code_.isa(), address, std::span{bytes}.first(count));
}

std::string CodePlaces::function_at(TraceeAddr address) {
  std::string name = symbols_.function_name(symbols_.at(address).id);
  if (name.empty()) name = symbols_.module_place(address);
  return name.empty() ? fmt::format("{:#x}", address.value()) : name;
}

void CodePlaces::add_functions(TraceeAddr address, std::vector<SignatureFrame>& out) {
  const std::string module = symbols_.module_place(address);
  for (const CodeFrame& frame : symbols_.frames_at(address)) {
    const std::string& name = symbols_.text(frame.name);
    out.push_back({name.empty() ? function_at(address) : name, module.substr(0, module.find('+'))});
  }
}

}  // namespace backtrail::decoder
