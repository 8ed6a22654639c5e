#!/usr/bin/env python3
"""Checks who includes whom: server -> ptrace -> decoder -> arch, and never back.

usage: layering.py ROOT      exit status 1 and one line a breach
"""

import os
import re
import sys

# A folder may include itself and what stands to its right.
ORDER = ("server", "ptrace", "decoder", "arch")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')

# Headers that only .cpp files may include: they are implementation details of one place.
HIDDEN = re.compile(r"^(capstone/|Zydis/|Zycore/|intel-pt\.h|pugixml|boost/|CLI/)")
# Kernel interfaces: arch/ and decoder/ work on plain bytes.
KERNEL = re.compile(r"^(sys/|linux/|asm/|unistd\.h|fcntl\.h|signal\.h|sched\.h|poll\.h|elf\.h$)")
# elf.h and sys/types.h are layouts and types only, no calls.
KERNEL_ALLOWED = {"elf.h", "sys/types.h"}
# Headers of a folder's own, which nobody else includes, may show the library that it is about.
HIDDEN_ALLOWED = {"arch/x86/values/model_builder.hpp"}
ASIO = re.compile(r"^boost/asio")
ASIO_ALLOWED = re.compile(r"^server/(transport/|main\.cpp$)")


def sources(root):
    for top in ORDER:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".hpp", ".cpp", ".h", ".c")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def breach(path, quote, header):
    """Why `path` must not include `header`; None when it may."""
    top = path.split("/")[0]
    header_top = header.split("/")[0]
    if quote == '"':
        if header_top not in ORDER:
            return "project headers are included by their path from the root"
        if ORDER.index(header_top) < ORDER.index(top):
            return "%s/ must not know %s/" % (top, header_top)
        return None
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
    for path in sources(root):
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
