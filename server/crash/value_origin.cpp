// SPDX-License-Identifier: Apache-2.0
#include "server/crash/value_origin.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arch/disassemble.hpp"
#include "decoder/report/clean_text.hpp"
#include "decoder/report/code_places.hpp"
#include "decoder/values/value_trail.hpp"
#include "server/crash/crash_values.hpp"
#include "server/target/past_values.hpp"
#include "server/target/register_slots.hpp"

namespace backtrail::server {
namespace {

namespace values = decoder::values;
using decoder::FrameState;
using decoder::PlacedVariable;
using values::Known;
using values::TrailPart;
using Kind = TrailPart::Kind;

constexpr unsigned kWordBytes = 8;
constexpr unsigned kByteBits = 8;
constexpr unsigned kRegisterBits = 64;

/// Memory, or a register of the innermost frame.
struct Subject {
  std::string text;  ///< Name and value.
  std::optional<TraceeAddr> address;
  unsigned bytes = kWordBytes;
  values::Slot slot = 0;
};

std::string number_text(const Known& value, unsigned bits) {
  if (!value.all(bits)) return "?";
  constexpr std::uint64_t kDigits = 10;
  const std::uint64_t number = value.value & arch::cpu::values::low_bits(bits);
  return number < kDigits ? fmt::format("{}", number) : fmt::format("{:#x}", number);
}

class Origin {
 public:
  Origin(const decoder::CoreFile& core, tracee::ProgramMemory& memory, decoder::Symbols& symbols)
      : core_{core},
        thread_{core.threads().front()},
        values_{core, memory},
        symbols_{symbols},
        places_{memory, symbols} {}

  Explained<std::string> explain(const std::string& expression) {
    PastValues* past = values_.of(thread_.tid);
    if (past == nullptr) return server::explain("values of 32-bit programs are not followed");
    if (past->steps() == 0) {
      return server::explain("the file has no branch trace of the thread that died");
    }
    history_ = &past->history();
    steps_ = past->steps();
    const auto subject = find(expression);
    if (!subject) return server::explain(subject.error());
    const auto trail =
        subject->address
            ? values::trail_of_memory(*history_, steps_, *subject->address, subject->bytes)
            : values::trail_of_register(*history_, steps_, subject->slot,
                                        std::min(kByteBits * subject->bytes, kRegisterBits));
    std::string out = subject->text + "\n";
    for (const TrailPart& part : trail) out += fmt::format("  {}\n", part_text(part));
    return out;
  }

 private:
  Explained<Subject> find(const std::string& expression) {
    if (expression.starts_with('$')) return find_register(expression);
    if (expression.starts_with("0x")) return find_memory(expression);
    // As gdb writes it: 'file.c'::name.
    std::string name = expression;
    std::erase(name, '\'');
    return find_variable(name);
  }

  Explained<Subject> find_register(const std::string& expression) {
    const auto slot = general_slot(std::string_view{expression}.substr(1));
    if (!slot) {
      return server::explain(
          fmt::format("{} is no general register of x86-64", decoder::printable(expression)));
    }
    Subject subject;
    subject.slot = *slot;
    subject.text = expression;
    return subject;
  }

  Explained<Subject> find_memory(const std::string& expression) {
    const auto wrong = [&] {
      return server::explain(
          fmt::format("'{}' is no address like 0x7ffe1000 or 0x7ffe1000:4, with 1 to "
                      "4096 bytes",
                      decoder::printable(expression)));
    };
    constexpr int kHex = 16;
    constexpr unsigned kMostBytes = 4096;
    const char* const end = expression.data() + expression.size();
    std::uint64_t address = 0;
    auto read = std::from_chars(expression.data() + 2, end, address, kHex);
    if (read.ec != std::errc{}) return wrong();
    Subject subject;
    if (read.ptr != end) {
      if (*read.ptr != ':') return wrong();
      read = std::from_chars(read.ptr + 1, end, subject.bytes);
      if (read.ec != std::errc{} || read.ptr != end) return wrong();
    }
    if (subject.bytes == 0 || subject.bytes > kMostBytes) return wrong();
    for (std::uint64_t i = 0; i < subject.bytes; ++i) {
      const TraceeAddr at{address + i};
      if (core_.segment_at(at) != nullptr) continue;
      return server::explain(fmt::format(
          "the crash file has no memory at {}: nothing was mapped there, or it was left out", at));
    }
    subject.address = TraceeAddr{address};
    subject.text = fmt::format("{} bytes at {:#x}", subject.bytes, address);
    if (const auto state = values_.at_end(thread_.tid)) {
      subject.text += " = " + bytes_text(*state, *subject.address, subject.bytes);
    }
    return subject;
  }

  static std::string bytes_text(FrameState& state, TraceeAddr address, unsigned bytes) {
    std::array<std::uint8_t, kWordBytes> read{};
    const std::size_t wanted = std::min<std::size_t>(bytes, read.size());
    if (state.memory(address, std::span{read}.first(wanted)) != wanted) return "?";
    if (bytes > kWordBytes) {
      return fmt::format("{:02x} ...", fmt::join(std::span{read}.first(wanted), " "));
    }
    Known value{0, arch::cpu::values::low_bits(kByteBits * bytes)};
    for (std::size_t i = 0; i < wanted; ++i)
      value.value |= std::uint64_t{read[i]} << (kByteBits * i);
    return number_text(value, kByteBits * bytes);
  }

  /// Searches the functions on the stack, from the innermost one on, and then all source files.
  Explained<Subject> find_variable(const std::string& name) {
    constexpr std::size_t kMostFrames = 64;
    std::vector<std::unique_ptr<FrameState>> states;
    states.push_back(values_.at_end(thread_.tid));
    std::optional<std::string> elsewhere;
    for (std::size_t i = 0; i < kMostFrames && states.back() != nullptr; ++i) {
      FrameState& state = *states.back();
      const Known pc = state.reg(FrameState::kPc);
      if (!pc.all()) break;
      const TraceeAddr place{i == 0 ? pc.value : pc.value - 1};
      const auto found = symbols_.variables().find(place, name, state);
      if (found.size() > 1) return ambiguous(name, found);
      if (!found.empty()) {
        const std::string where = where_text(found.front(), places_.function_at(place));
        // Registers of callers are not followed: the trace ends in the innermost function.
        if (found.front().address || (found.front().reg && i == 0)) {
          return subject_of(found.front(), where);
        }
        if (!elsewhere) elsewhere = where;
      }
      states.push_back(symbols_.variables().caller(place, state));
    }
    if (!elsewhere && states.front() != nullptr) {
      const auto found = symbols_.variables().find_global(name, *states.front());
      if (found.size() > 1) return ambiguous(name, found);
      if (!found.empty()) {
        elsewhere = where_text(found.front(), {});
        if (found.front().address) return subject_of(found.front(), *elsewhere);
      }
    }
    if (elsewhere) {
      return server::explain(fmt::format(
          "{} is not in one place in memory that is known: optimised code keeps it elsewhere or "
          "has removed it, each thread has its own, or a library and the program have one of the "
          "same name",
          *elsewhere));
    }
    return server::explain(fmt::format(
        "no function on the stack of the thread that died has a variable {}, and there is no "
        "global "
        "one, as far as debug information was found; an address can be given instead: 0x7ffe1000:4",
        decoder::printable(name)));
  }

  /// Returns "count of main", or for a global variable "space::count of file.c".
  static std::string where_text(const PlacedVariable& found, const std::string& function) {
    const bool is_global = !found.file.empty();
    return fmt::format("{} of {}", decoder::printable(found.variable.name),
                       decoder::printable(is_global ? found.file : function));
  }

  static tl::unexpected<std::string> ambiguous(const std::string& name,
                                               const std::vector<PlacedVariable>& found) {
    std::vector<std::string> names;
    names.reserve(found.size());
    for (const PlacedVariable& each : found) {
      names.push_back(decoder::printable(each.file + "::" + each.variable.name));
    }
    return server::explain(fmt::format("there are several variables {}; say which one: {}",
                                       decoder::printable(name), fmt::join(names, ", ")));
  }

  static Explained<Subject> subject_of(const PlacedVariable& found, const std::string& where) {
    constexpr std::uint64_t kMostBytes = 4096;
    if (found.bytes == 0 || found.bytes > kMostBytes) {
      return server::explain(where + " is too large, or its size is not known: give an address");
    }
    Subject subject;
    subject.text =
        fmt::format("{} = {}", where, decoder::printable(found.variable.value.value_or("?")));
    subject.bytes = static_cast<unsigned>(found.bytes);
    if (found.address) {
      subject.address = TraceeAddr{*found.address};
      subject.text += fmt::format(", at {:#x}", *found.address);
    } else {
      subject.slot = dwarf_slot(*found.reg).value_or(subject.slot);
    }
    return subject;
  }

  /// Returns the instruction of a step; that at the end has not run.
  std::optional<TraceeAddr> pc_of(std::size_t step) {
    if (step == steps_) return thread_.user.pc();
    if (const auto executed = history_->step(step)) return executed->pc;
    const auto hiding = history_->hiding_step();
    return hiding && hiding->number == step ? std::optional{hiding->step.pc} : std::nullopt;
  }

  /// Returns whether a function has no name but its place in its file, "libc.so.6+0x91980".
  static bool is_nameless(const decoder::ReportPlace& place) {
    const std::string& name = place.frames.front().function;
    const std::size_t plus = place.module_place.rfind('+');
    return name.empty() ||
           (plus != std::string::npos && name.starts_with(place.module_place.substr(0, plus + 1)));
  }

  /// Returns the function as "f()".
  static std::string called(const decoder::ReportPlace& place) {
    const std::string& name = place.frames.front().function;
    return name + (name.ends_with(')') ? "" : "()");
  }

  /// Returns " (after read())", the function with a name that the thread was in last before a step
  /// without one: glibc 2.41 has system calls in local functions. Empty if there is none nearby.
  std::string named_before(std::size_t step) {
    constexpr std::size_t kNearby = 100;
    for (std::size_t back = 1; back <= std::min(kNearby, step); ++back) {
      const auto pc = pc_of(step - back);
      if (!pc) break;
      const decoder::ReportPlace place = places_.place(*pc);
      if (!is_nameless(place)) return fmt::format(" (after {})", called(place));
    }
    return {};
  }

  /// Returns the instruction of a step, as it was executed.
  std::string instruction(std::size_t step, TraceeAddr pc) {
    const auto executed = step == steps_ ? std::nullopt : history_->step(step);
    return executed && executed->code != nullptr
               ? arch::disassemble(arch::Isa::kAmd64, pc, executed->code->view())
               : places_.instruction(pc);
  }

  /// Returns "f() file.c:3: `mov %rax, (%rdi)`, 7 instructions before the end".
  std::string place_text(std::size_t step) {
    const auto pc = pc_of(step);
    if (!pc) return "an unknown place";
    const decoder::ReportPlace place = places_.place(*pc);
    const decoder::ReportFrame& frame = place.frames.front();
    std::string text =
        is_nameless(place) ? places_.function_at(*pc) + named_before(step) : called(place);
    if (!frame.file.empty()) {
      const std::size_t slash = frame.file.rfind('/');
      text += fmt::format(" {}:{}", frame.file.substr(slash + 1), frame.line);
    }
    const std::size_t before = steps_ - step;
    return fmt::format("{}: `{}`, {}", decoder::printable(text), instruction(step, *pc),
                       before == 0   ? "the instruction at the end"
                       : before == 1 ? "the last instruction that ran"
                                     : fmt::format("{} instructions before the end", before));
  }

  static std::string beginning_text(std::size_t steps) {
    if (steps == 0) return "The trail ends: no instruction before the end can be looked at";
    return fmt::format(
        "The trail ends: nothing wrote it in the {} instructions before the end that can be "
        "looked at",
        steps);
  }

  static std::string inputs_text(const TrailPart& part) {
    std::vector<std::string> inputs;
    for (const auto& input : part.inputs) inputs.push_back(number_text(input.value, input.bits));
    return fmt::format("{}", fmt::join(inputs, " and "));
  }

  std::string part_text(const TrailPart& part) {
    const std::string value = number_text(part.value, part.bits);
    const auto place = [&] { return place_text(part.step); };
    switch (part.kind) {
      case Kind::kStored:
        return fmt::format("{} was stored at {:#x} by {}{}", value, part.address, place(),
                           part.is_partial ? "; the other bytes are not followed" : "");
      case Kind::kLoaded:
        return fmt::format("{} was loaded from {:#x} by {}", value, part.address, place());
      case Kind::kComputed:
        return fmt::format("{} was made from {} by {}", value, inputs_text(part), place());
      case Kind::kSeveral:
        return fmt::format(
            "{} was made from {} by {}. The trail ends: there are several values to "
            "follow",
            value, inputs_text(part), place());
      case Kind::kConstant:
        return fmt::format("The trail ends: {} is a constant of the program, in {}", value,
                           place());
      case Kind::kCallResult:
        return fmt::format("The trail ends: {} is the result of a system call: {}", value, place());
      case Kind::kHandlerReturn:
        return fmt::format("The trail ends: the return from a signal handler set it: {}", place());
      case Kind::kHalfDone:
        return fmt::format(
            "The trail ends: it may have been changed by the instruction at which the program "
            "stopped, which may be half done: {}",
            place());
      case Kind::kUnknownEffects:
        return fmt::format(
            "The trail ends: it may have been written by {}: what that changes is not known",
            place());
      case Kind::kKernel:
        return fmt::format("The trail ends: a system call wrote it, or may have: {}", place());
      case Kind::kMapped:
        return fmt::format(
            "The trail ends: a system call made the memory, or changed it, or may have: {}",
            place());
      case Kind::kSignal:
        return fmt::format("The trail ends: a signal came before {}", place());
      case Kind::kOthers:
        return "The trail ends: others may have written this memory: threads, processes, or the "
               "kernel at its own times";
      case Kind::kMayBeStored:
        return fmt::format(
            "The trail ends: it may have been written by {}: what that wrote, or where, is not "
            "known",
            place());
      case Kind::kUnknownAddress:
        return fmt::format("The trail ends: it was loaded from an address that is not known, by {}",
                           place());
      case Kind::kUntracked:
        return fmt::format(
            "{} was made by {}. The trail ends: what such an instruction makes is "
            "not followed",
            value, place());
      case Kind::kBeginning:
        return beginning_text(steps_ - part.step);
      case Kind::kTooLong:
        return "The trail goes on; this is as far as it is shown";
    }
    return {};
  }

  const decoder::CoreFile& core_;
  const decoder::CoreThread& thread_;
  CrashValues values_;
  decoder::Symbols& symbols_;
  decoder::CodePlaces places_;
  values::ValueHistory* history_ = nullptr;
  std::size_t steps_ = 0;
};

}  // namespace

Explained<std::string> value_origin(const decoder::CoreFile& core, tracee::ProgramMemory& memory,
                                    decoder::Symbols& symbols, const std::string& expression) {
  return Origin{core, memory, symbols}.explain(expression);
}

}  // namespace backtrail::server
