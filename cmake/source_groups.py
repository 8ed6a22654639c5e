#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Groups files that may be one translation unit: their internal names do not collide.

usage: source_groups.py MOST < FILES

Reads lines "KIND<tab>FILE"; writes "KIND<tab>GROUP<tab>FILE<tab>FILE..." for each group of several, at
most MOST, files of one kind.
"""

import collections
import math
import re
import sys


# Names that may occur in several files: no declaration, or an overload for a type of the file's own.
OVERLOADED = {"PrintTo", "operator", "static_assert"}


def internal_names(path):
    """Returns a file's internal names: an alias maps to its text, any other name to the file's path.

    Relies on clang-format, which starts a namespace's contents in the first column.
    """
    names, unnamed = {}, False
    with open(path, encoding="utf-8") as text:
        for line in text:
            if line.startswith("namespace {"):
                unnamed = True
            elif line.startswith("}  // namespace\n"):
                unnamed = False
            alias = re.match(r"(?:using|namespace) (\w+) =", line)
            macro = re.match(r"#\s*define (\w+)", line)
            if alias:
                names[alias.group(1)] = line
            elif macro:
                names[macro.group(1)] = path
            elif (unnamed or line.startswith("static ")) and re.match(r"[A-Za-z_:]", line):
                if re.match(r"using |namespace |TEST(_[FP])?\(|INSTANTIATE_TEST_SUITE_P", line):
                    continue
                name = (re.match(r"(?:class|struct|union|enum(?: class)?) (\w+)", line) or
                        re.search(r"(\w+)\s*(?:\(|=|\{|;|\[)", line))
                if name and name.group(1) not in OVERLOADED:
                    names[name.group(1)] = path
            elif line.startswith("int main("):
                names["main"] = path
    return names


def collide(some, others):
    return any(others.get(name, text) != text for name, text in some.items())


def even_size(count, most):
    """The size of groups of equal sizes, none beyond most: a small last one would not run beside them."""
    return math.ceil(count / math.ceil(count / most))


def groups(files, most):
    """@param files  (kind, path, what it is) of each; @return lists of what may be together."""
    result = []
    counts = collections.Counter(kind for kind, _, _ in files)
    for kind, path, item in sorted(files, key=lambda file: file[1]):
        names = internal_names(path)
        size = even_size(counts[kind], most)
        for group_kind, members, taken in result:
            if group_kind == kind and len(members) < size and not collide(names, taken):
                members.append(item)
                taken.update(names)
                break
        else:
            result.append((kind, [item], names))
    return [members for _, members, _ in result]


def main():
    files = []
    for line in sys.stdin:
        kind, path = line.rstrip("\n").split("\t")
        files.append((kind, path, (kind, path)))
    for number, members in enumerate(groups(files, int(sys.argv[1]))):
        if len(members) > 1:
            print("\t".join([members[0][0], "united_%d" % number] + [path for _, path in members]))


if __name__ == "__main__":
    main()
