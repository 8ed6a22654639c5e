#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a source has no SPDX line.

usage: spdx.py ROOT      exit status 1 and one line a source without it
"""

import sys

from source_files import DATA, read, source_files

LINE = "SPDX-License-Identifier: " + "Apache-2.0"
TOPS = ("arch", "decoder", "ptrace", "server", "test", "cmake")
KINDS = (".hpp", ".cpp", ".h", ".c", ".S", ".js", ".py", ".sh", ".cmake", "CMakeLists.txt")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    files = missing = 0
    for path in source_files(root, TOPS, KINDS, DATA):
        files += 1
        if LINE not in read(root, path):
            missing += 1
            print("%s: no line '%s'" % (path, LINE))
    if not files:
        print("spdx: no sources below %s" % root)
    return 1 if missing or not files else 0


if __name__ == "__main__":
    sys.exit(main())
