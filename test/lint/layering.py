#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom: server -> ptrace -> decoder -> arch, and never back; the same for the
rooms of each of them.

usage: layering.py ROOT      exit status 1 and one line a breach
"""

import os
import re
import sys

from source_files import source_files

# A folder may include itself and what stands to its right.
ORDER = ("server", "ptrace", "decoder", "arch")
# The rooms of each folder: one may include itself and those before it. "" is the folder itself.
ROOMS = {
    "arch": ("base", "", "x86", "x86/bts", "x86/values", "x86/translate", "cpu"),
    "decoder": ("trace", "bts", "cachelog", "pt", "perf", "file", "calls", "corefile", "values",
                "past", "variables", "symbols", "report", "export"),
    "ptrace": ("os", "perf", "tracee", "remote", "source", "core",
               "codecache/program", "codecache/memory", "codecache/persist",
               "codecache/translation", "codecache/syscalls", "codecache/space",
               "codecache/recorder", "trace", "engine"),
    "server": ("rsp", "portable", "agent", "target", "session", "handlers", "transport", "crash",
               "record", "cli", "doctor", ""),
}
# Interfaces that a room offers to those before it, which call what implements them.
INTERFACES = {
    "ptrace/source/branch_source.hpp": ("tracee",),
}

# What depends on the CPU goes through arch/cpu. These may include one CPU's headers, as they are
# about that CPU by nature; the list only gets shorter.
ONE_CPU = {
    "decoder/bts/branch_store.hpp": "a qualifier that only BTS has",
    "decoder/bts/ds_dump.hpp": "dumps of Intel's DS area",
    "ptrace/core/core_notes.cpp": "NT_X86_XSTATE and NT_PRFPREG of cores",
    "ptrace/remote/call_batch.hpp": "machine code for calls in a row",
    "server/cli/decode.hpp": "`backtrail decode` of DS areas",
    "server/target/core_target.cpp": "NT_X86_XSTATE of cores",
}

ONE_CPU_HEADER = re.compile(r"^arch/(?!base/|cpu/)[^/]+/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')

# Headers that only .cpp files may include: they are implementation details of one place.
HIDDEN = re.compile(r"^(capstone/|Zydis/|Zycore/|intel-pt\.h|pugixml|boost/|CLI/)")
# Kernel interfaces: arch/ and decoder/ work on plain bytes.
KERNEL = re.compile(r"^(sys/|linux/|asm/|unistd\.h|fcntl\.h|signal\.h|sched\.h|poll\.h|elf\.h$)")
# elf.h and sys/types.h are layouts and types only, no calls.
KERNEL_ALLOWED = {"elf.h", "sys/types.h"}
# Headers of a folder's own, which nobody else includes, may show the library that it is about.
HIDDEN_ALLOWED = {"arch/x86/translate/zydis_decoder.hpp", "arch/x86/values/model_builder.hpp"}
ASIO = re.compile(r"^boost/asio")
ASIO_ALLOWED = re.compile(r"^server/(transport/|main\.cpp$)")


def room_breach(path, header):
    """Why `path` must not include `header` of the same folder; None when it may."""
    top, _, rest = path.partition("/")
    room, other = os.path.dirname(rest), os.path.dirname(header.partition("/")[2])
    rooms = ROOMS[top]
    for each in (room, other):
        if each not in rooms:
            return "%s/%s is in no list of rooms (test/lint/layering.py)" % (top, each)
    if rooms.index(other) <= rooms.index(room) or room in INTERFACES.get(header, ()):
        return None
    return "%s/%s comes before %s/%s" % (top, room, top, other)


def breach(path, quote, header):
    """Why `path` must not include `header`; None when it may."""
    top = path.split("/")[0]
    header_top = header.split("/")[0]
    if quote == '"':
        if header_top not in ORDER:
            return "project headers are included by their path from the root"
        if ORDER.index(header_top) < ORDER.index(top):
            return "%s/ must not know %s/" % (top, header_top)
        if top != "arch" and ONE_CPU_HEADER.match(header) and path not in ONE_CPU:
            return "what depends on the CPU is included by arch/cpu/ (docs/porting.md)"
        return room_breach(path, header) if header_top == top else None
    hides = path.endswith((".hpp", ".h")) and path not in HIDDEN_ALLOWED
    if hides and HIDDEN.match(header):
        if not (ASIO.match(header) and path.startswith("server/transport/")):
            return "a library hidden in .cpp files"
    if ASIO.match(header) and not ASIO_ALLOWED.match(path):
        return "Asio belongs to server/transport"
    if top in ("arch", "decoder") and KERNEL.match(header) and header not in KERNEL_ALLOWED:
        return "%s/ makes no system calls" % top
    return None


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    files = breaches = 0
    for path in source_files(root, ORDER, (".hpp", ".cpp", ".h", ".c")):
        files += 1
        with open(os.path.join(root, path), encoding="utf-8") as text:
            for number, line in enumerate(text, 1):
                found = INCLUDE.match(line)
                why = found and breach(path, found.group(1), found.group(2))
                if why:
                    breaches += 1
                    print("%s:%d: %s: %s" % (path, number, line.strip(), why))
    if not files:
        print("layering: no sources below %s" % root)
        return 1
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
