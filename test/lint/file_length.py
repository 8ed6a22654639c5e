#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a source has more than 800 lines; names those past 500, which want to be split.

usage: file_length.py ROOT
"""

import os
import sys

WANT, LIMIT = 500, 800
TOPS = ("arch", "decoder", "ptrace", "server", "test")
# Tables of facts, and bytes that are data.
EXEMPT_FOLDERS = (os.path.join("test", "data"), os.path.join("test", "fuzz", "corpus"))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    lengths = []
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            if os.path.relpath(folder, root).startswith(EXEMPT_FOLDERS):
                continue
            for name in names:
                if name.endswith((".hpp", ".cpp", ".h", ".c", ".S", ".py")):
                    path = os.path.join(folder, name)
                    with open(path, "rb") as text:
                        lengths.append((sum(1 for _ in text), os.path.relpath(path, root)))
    for lines, path in sorted(lengths, reverse=True):
        if lines > WANT:
            print("%5d lines  %s%s" % (lines, path, "  TOO LONG" if lines > LIMIT else ""))
    if not lengths:
        print("file_length: no sources below %s" % root)
    return 1 if not lengths or max(lengths)[0] > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
