#!/usr/bin/env python3
"""Fails when docs/bts.md names a test that does not exist, has a row without a test, or when the
manual page lacks an operation.

usage: doc_tests.py ROOT
"""

import os
import re
import sys

DEFINED = re.compile(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", re.MULTILINE)
# A row of the simulated kernel's table: its number, then what the kernel does.
ROW = re.compile(r"^ +\{(\d+),\s*\"", re.MULTILINE)
NAMED = re.compile(r"`([A-Z]\w+)\.(\w+|\*)`")
OPERATIONS = ("config", "status", "size", "get", "clear", "drain")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as text:
        return text.read()


def defined_tests(root):
    """The names of all tests; rows of the simulated kernel as SimulatedKernel.RowN."""
    names = set()
    for folder, _, files in os.walk(os.path.join(root, "test")):
        for name in files:
            if not name.endswith(".cpp"):
                continue
            text = read(folder, name)
            names.update(".".join(test) for test in DEFINED.findall(text))
            if name.startswith("simulated_") and name.endswith("_cases.cpp"):
                names.update("SimulatedKernel.Row" + number for number in ROW.findall(text))
    return names


def complaints(page, tests):
    """What is wrong with a page whose tables have a last column "test"."""
    out = []
    for number, line in enumerate(page.splitlines(), 1):
        named = [".".join(name) for name in NAMED.findall(line)]
        out += ["line %d: there is no test %s" % (number, name) for name in named
                if name not in tests]
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if not line.startswith("|") or cells[-1] == "test" or set(line) <= set("|- "):
            continue
        if not named and "lint" not in cells[-1]:
            out.append("line %d: no test: %s" % (number, line))
    return out


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    wrong = complaints(read(root, "docs", "bts.md"), defined_tests(root))
    manual = read(root, "docs", "backtrail-bts.7")
    wrong += ["backtrail-bts(7) lacks %s" % operation for operation in OPERATIONS
              if "monitor bts " + operation not in manual]
    for line in wrong:
        print("docs/bts.md:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
