#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a source has more than 800 lines; names those past 500, which want to be split.

usage: file_length.py ROOT
"""

import os
import sys

from source_files import DATA, source_files

WANT, LIMIT = 500, 800
TOPS = ("arch", "decoder", "ptrace", "server", "test")
KINDS = (".hpp", ".cpp", ".h", ".c", ".S", ".py")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    lengths = []
    for path in source_files(root, TOPS, KINDS, DATA):
        with open(os.path.join(root, path), "rb") as text:
            lengths.append((sum(1 for _ in text), path))
    for lines, path in sorted(lengths, reverse=True):
        if lines > WANT:
            print("%5d lines  %s%s" % (lines, path, "  TOO LONG" if lines > LIMIT else ""))
    if not lengths:
        print("file_length: no sources below %s" % root)
    return 1 if not lengths or max(lengths)[0] > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
