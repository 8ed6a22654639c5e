// SPDX-License-Identifier: Apache-2.0
// auxv, exec-file, features, threads, siginfo: documents about the selected process and thread.

#include <fmt/format.h>

#include "arch/base/markup.hpp"
#include "server/handlers/qxfer_objects.hpp"
#include "server/rsp/hex.hpp"
#include "server/session/events.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

std::string to_text(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const std::string_view entity = entity_of(c);
    const bool control =
        (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
    if (entity.empty()) {
      out += control ? '?' : c;
    } else {
      out += entity;
    }
  }
  return out;
}

Document auxv_document(SessionContext& context, std::string_view annex) {
  const auto pid = context.selected_process();
  if (!annex.empty() || !pid) return no_document();
  const auto auxv = context.target.auxv(*pid);
  if (!auxv) return no_document();
  return to_text(*auxv);
}

/// The annex is a process id in hex; empty = the selected process.
Document exec_file_document(SessionContext& context, std::string_view annex) {
  auto pid = context.selected_process();
  if (!annex.empty()) {
    PacketText text{annex};
    pid = take_pid(text);
    if (!text.at_end()) return no_document();
  }
  if (!pid || !context.has_process(*pid)) return no_document();
  const auto path = context.target.exec_file(*pid);
  if (!path) return no_document();
  return *path;
}

Document features_document(SessionContext& context, std::string_view annex) {
  const auto pid = context.selected_process();
  if (annex != "target.xml" || !pid) return no_document();
  const auto set = context.target.register_set(*pid);
  if (!set) return no_document();
  return context.client.x86_registers ? (*set)->target_xml() : (*set)->assumed_xml();
}

Document threads_document(SessionContext& context, std::string_view annex) {
  if (!annex.empty()) return no_document();
  if (RunControl* run = context.target.run_control()) run->update_thread_list();
  std::string out = "<threads>\n";
  for (const pid_t pid : context.target.processes()) {
    for (const ThreadInfo& thread : context.target.threads(pid)) {
      if (is_unannounced_child(context, thread.id)) continue;
      out += fmt::format("<thread id=\"{}\"", context.format(thread.id));
      if (thread.core >= 0) out += fmt::format(" core=\"{}\"", thread.core);
      if (!thread.name.empty()) out += fmt::format(" name=\"{}\"", xml_escaped(thread.name));
      if (!thread.handle.empty()) {
        out += fmt::format(" handle=\"{}\"", rsp::to_hex(thread.handle));
      }
      out += "/>\n";
    }
  }
  out += "</threads>\n";
  return out;
}

Document siginfo_document(SessionContext& context, std::string_view annex) {
  const auto thread = context.selected_thread();
  if (!annex.empty() || !thread) return no_document();
  const auto siginfo = context.target.siginfo(*thread);
  if (!siginfo) return no_document();
  return to_text(*siginfo);
}

}  // namespace backtrail::server::handlers
