#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a source has no SPDX line.

usage: spdx.py ROOT      exit status 1 and one line a source without it
"""

import os
import sys

LINE = "SPDX-License-Identifier: " + "Apache-2.0"
TOPS = ("arch", "decoder", "ptrace", "server", "test", "cmake")
KINDS = (".hpp", ".cpp", ".h", ".c", ".S", ".js", ".py", ".sh", ".cmake")
# Bytes that are data.
EXEMPT = (os.path.join("test", "data"), os.path.join("test", "fuzz", "corpus"))


def sources(root):
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            if os.path.relpath(folder, root).startswith(EXEMPT) or "__pycache__" in folder:
                continue
            for name in sorted(names):
                if name.endswith(KINDS) or name == "CMakeLists.txt":
                    yield os.path.relpath(os.path.join(folder, name), root)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    files = missing = 0
    for path in sources(root):
        files += 1
        with open(os.path.join(root, path), encoding="utf-8") as text:
            if LINE not in text.read():
                missing += 1
                print("%s: no line '%s'" % (path, LINE))
    if not files:
        print("spdx: no sources below %s" % root)
    return 1 if missing or not files else 0


if __name__ == "__main__":
    sys.exit(main())
