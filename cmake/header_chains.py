#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Groups headers for the check that each compiles alone, so that few texts check all of them.

usage: header_chains.py WIDELY_INCLUDED... < HEADERS

In one text a header may come after headers that it includes itself, directly or through others:
its own text sees those in any case. The headers of WIDELY_INCLUDED (<NAME> or a path) that all of a
text's headers include may be precompiled for the same reason.

Reads paths relative to the current folder, one a line; writes "WIDELY+INCLUDED<tab>HEADER<tab>HEADER..."
for each text.
"""

import collections
import re
import sys


class Headers:
    """What headers include, directly or through others."""

    def __init__(self, paths):
        self.paths = set(paths)
        self.known = {}

    def included(self, path):
        """@return paths of headers, and the names of those in angle brackets as they are written."""
        if path not in self.known:
            found = set()
            with open(path, encoding="utf-8") as text:
                names = re.findall(r'^#include (<[^>]+>|"[^"]+")', text.read(), re.MULTILINE)
            for name in names:
                if name.startswith("<"):
                    found.add(name)
                elif name.strip('"') in self.paths:
                    found |= {name.strip('"')} | self.included(name.strip('"'))
            self.known[path] = found
        return self.known[path]


def longest_chains(paths, included):
    """@return the fewest lists in which each path is included by the one after it."""
    before, after = {}, {}  # A path's neighbours.
    includers = collections.defaultdict(list)
    for path in paths:
        for other in sorted(included(path) & set(paths)):
            includers[other].append(path)

    def joins(path, tried):
        """Finds a path to come after this one, for which others may have to change theirs."""
        for includer in includers[path]:
            if includer in tried:
                continue
            tried.add(includer)
            if includer not in before or joins(before[includer], tried):
                before[includer], after[path] = path, includer
                return True
        return False

    for path in paths:
        joins(path, set())
    chains = []
    for path in paths:
        if path not in before:
            chain = [path]
            while chain[-1] in after:
                chain.append(after[chain[-1]])
            chains.append(chain)
    return chains


def texts(paths, widely):
    """@return (headers that may be precompiled, the text's headers in order) of each text."""
    headers = Headers(paths)
    kinds = collections.defaultdict(list)
    for path in sorted(paths):
        kinds[tuple(sorted(headers.included(path) & set(widely)))].append(path)
    return [(kind, chain) for kind in sorted(kinds)
            for chain in longest_chains(kinds[kind], headers.included)]


def main():
    for kind, chain in texts(sys.stdin.read().split(), sys.argv[1:]):
        print("\t".join(["+".join(kind)] + chain))


if __name__ == "__main__":
    main()
