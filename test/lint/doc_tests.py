#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when docs/bts.md or docs/kernel-behaviour.md name a test that does not exist or have a row
without a test, when the latter leaves out a row of the simulated kernel or a number, or when the
manual page lacks an operation.

usage: doc_tests.py ROOT
"""

import os
import re
import sys

from source_files import read, source_files

DEFINED = re.compile(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", re.MULTILINE)
# A row of the simulated kernel's table: its number, then what the kernel does.
ROW = re.compile(r"^ +\{(\d+),\s*\"", re.MULTILINE)
NAMED = re.compile(r"`([A-Z]\w+)\.(\w+|\*)`")
NUMBER = re.compile(r"^\| (\d+) \|", re.MULTILINE)
OPERATIONS = ("config", "status", "size", "get", "clear", "drain")


def defined_tests(root):
    """The names of all tests; rows of the simulated kernel as SimulatedKernel.RowN."""
    names = set()
    for path in source_files(root, ("test",), ".cpp"):
        text = read(root, path)
        names.update(".".join(test) for test in DEFINED.findall(text))
        name = os.path.basename(path)
        if name.startswith("simulated_") and name.endswith("_cases.cpp"):
            names.update("SimulatedKernel.Row" + number for number in ROW.findall(text))
    return names


def complaints(page, tests):
    """What is wrong with a page whose tables have a last column "test"."""
    out = []
    rows = 0
    for number, line in enumerate(page.splitlines(), 1):
        named = [".".join(name) for name in NAMED.findall(line)]
        out += ["line %d: there is no test %s" % (number, name) for name in named
                if name not in tests]
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if not line.startswith("|") or cells[-1] == "test" or set(line) <= set("|- "):
            continue
        rows += 1
        if not named and "lint" not in cells[-1]:
            out.append("line %d: no test: %s" % (number, line))
    # A page whose table has moved must not pass.
    return out if rows else out + ["there is no table"]


def left_out(page, tests):
    """Rows of the simulated kernel that a page does not name, and numbers of its first column that
    are missing between 1 and the largest, or there twice."""
    named = {".".join(name) for name in NAMED.findall(page)}
    out = ["%s is not named" % test for test in sorted(tests)
           if test.startswith("SimulatedKernel.Row") and test not in named]
    numbers = sorted(int(number) for number in NUMBER.findall(page))
    if numbers != list(range(1, len(numbers) + 1)):
        out.append("the numbers of its rows are not 1 to %d" % len(numbers))
    return out


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    tests = defined_tests(root)
    wrong = []
    for name in ("bts.md", "kernel-behaviour.md"):
        wrong += [name + ": " + line for line in complaints(read(root, "docs", name), tests)]
    kernel = read(root, "docs", "kernel-behaviour.md")
    wrong += ["kernel-behaviour.md: " + line for line in left_out(kernel, tests)]
    manual = read(root, "docs", "backtrail-bts.7")
    wrong += ["backtrail-bts(7) lacks %s" % operation for operation in OPERATIONS
              if "monitor bts " + operation not in manual]
    for line in wrong:
        print("docs:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
