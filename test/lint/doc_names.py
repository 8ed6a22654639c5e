#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when docs/ name what is not there: a file, a test, an identifier, a link; when a header
does not own what the glossary says; when an invariant has no test; when a maintainer's page is too wide
or a section of it too long.

usage: doc_names.py ROOT
"""

import os
import re
import sys

from doc_tests import DEFINED, ROW
from source_files import read, source_files

SOURCES = ("arch", "decoder", "ptrace", "server", "test", "cmake")
TOPS = SOURCES + ("docs", ".ci")
SUFFIXES = (".hpp", ".cpp", ".py", ".h", ".c", ".js", ".cmake")
# What other programs call so.
FOREIGN = {"VmSize"}
# Pages whose shape is checked, too.
MAINTAINERS = re.compile(
    r"docs/((architecture|glossary|threading|errors|stops)|\w+/[\w-]+)\.md$")
SHORT_SECTIONS = re.compile(r"docs/codecache/(?!invariants)")
MOST_WORDS = 300
MOST_COLUMNS = 100

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TEST = re.compile(r"^([A-Z]\w+)\.([A-Z]\w*|\*)$")
FILE = re.compile(r"^[\w./-]+$")
WORD = re.compile(r"\w+")
# CamelCase, kConstant, CONSTANT_CASE with a project's prefix, a::b, or a function.
IDENTIFIER = re.compile(
    r"^(k[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|BT_\w+|\w+(::\w+)+)(\(\))?$|^[a-z]\w*_\w*\(\)$")
# In a picture: functions with a name of several words.
DRAWN = re.compile(r"\b[a-z]+_\w+\(\)")


def slug(heading):
    """GitHub's anchor of a heading."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page):
    return {slug(line.lstrip("#")) for line in FENCE.sub("", page).splitlines()
            if line.startswith("#")}


class Tree:
    """What there is: files, tests, the words of all sources."""

    def __init__(self, root):
        self.root = root
        self.by_name = {}
        self.tests = set()
        self.words = set()
        self.words.update(WORD.findall(read(root, "CMakeLists.txt")))
        for path in source_files(root, SOURCES, SUFFIXES):
            self.add(path)

    def add(self, path):
        text = read(self.root, path)
        self.by_name.setdefault(os.path.basename(path), []).append((path, text))
        self.words.update(WORD.findall(text))
        if path.startswith("test/") and path.endswith(".cpp"):
            self.tests.update(DEFINED.findall(text))
            if os.path.basename(path).startswith("simulated_"):
                self.tests.update(("SimulatedKernel", "Row" + row) for row in ROW.findall(text))

    def has_file(self, path):
        if os.path.exists(os.path.join(self.root, path)):
            return True
        return any(("/" + found).endswith("/" + path)
                   for found, _ in self.by_name.get(os.path.basename(path), ()))

    def has_test(self, suite, case):
        if case == "*":
            return any(suite == each for each, _ in self.tests)
        return (suite, case) in self.tests

    def header_has(self, header, word):
        return any(word in WORD.findall(text) for _, text in self.by_name.get(header, ()))


def unknown_name(tree, text):
    """What is wrong with one `quoted` text; None when nothing is."""
    test = TEST.match(text)
    if test and not tree.has_test(*test.groups()):
        return "there is no test %s" % text
    if test:
        return None
    is_path = "/" in text and text.split("/")[0] in TOPS
    if FILE.match(text) and (is_path or re.search(r"\w\.[hc]pp$", text)):
        return None if tree.has_file(text) else "there is no file %s" % text
    if IDENTIFIER.match(text) and not set(WORD.findall(text)) <= tree.words | FOREIGN:
        return "no source has the identifier %s" % text
    return None


def broken_link(tree, page_path, target, pages):
    """What is wrong with a link; None when nothing is, or when it leads out of the repository."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    to = os.path.normpath(os.path.join(os.path.dirname(page_path), path)) if path else page_path
    if not os.path.exists(os.path.join(tree.root, to)):
        return "the link %s leads nowhere" % target
    if anchor and to.endswith(".md"):
        text = pages.get(to) or read(tree.root, to)
        if anchor not in anchors(text):
            return "%s has no heading #%s" % (to, anchor)
    return None


def shape(path, page):
    """Lines that are too wide, sections that are too long. Tables are as wide as they are."""
    out = []
    for number, line in enumerate(page.splitlines(), 1):
        if len(line) > MOST_COLUMNS and not line.startswith("|"):
            out.append("line %d: wider than %d columns" % (number, MOST_COLUMNS))
    if not SHORT_SECTIONS.match(path):
        return out
    prose = re.sub(r"^\|.*$", "", FENCE.sub("", page), flags=re.MULTILINE)
    for section in re.split(r"^#+ ", prose, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if len(text.split()) > MOST_WORDS:
            out.append("section %s: more than %d words" % (heading, MOST_WORDS))
    return out


def rows(page):
    """The cells of all table rows but headings."""
    for line in FENCE.sub("", page).splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if line.startswith("|") and not set(line) <= set("|- ") and cells[-1] not in ("test",
                                                                                     "meaning"):
            yield cells


def unowned(tree, glossary):
    """Rows of the glossary whose header lacks their identifiers, and terms that are there twice."""
    out = []
    seen = set()
    for term, words, owners, _ in rows(glossary):
        if term in seen:
            out.append("%s is there twice" % term)
        seen.add(term)
        headers = QUOTED.findall(owners)
        for word in QUOTED.findall(words):
            if not any(tree.header_has(header, word) for header in headers):
                out.append("%s has no %s (%s)" % (owners, word, term))
    return out


def untested(invariants):
    """Invariants that name no test."""
    return ["no test: %s" % cells[0] for cells in rows(invariants)
            if not QUOTED.search(cells[-1])]


def checked_rows(page, check):
    """What `check` finds; a page that has moved, or has no table, must not pass."""
    return check(page) if any(rows(page)) else ["there is no table"]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    tree = Tree(root)
    at_top = [name for name in os.listdir(root) if name.endswith(".md")]
    pages = {path: read(root, path) for path in source_files(root, ["docs"] + at_top, ".md")}
    wrong = []
    for path, page in sorted(pages.items()):
        plain = FENCE.sub("", page)
        found = [unknown_name(tree, text) for text in QUOTED.findall(plain)]
        found += [broken_link(tree, path, target, pages) for target in LINK.findall(plain)]
        found += [unknown_name(tree, text) for fence in FENCE.findall(page)
                  for text in DRAWN.findall(fence)]
        if MAINTAINERS.match(path):
            found += shape(path, page)
        wrong += ["%s: %s" % (path, why) for why in found if why]
    for path, check in (("docs/glossary.md", lambda page: unowned(tree, page)),
                        ("docs/codecache/invariants.md", untested)):
        wrong += ["%s: %s" % (path, why) for why in checked_rows(pages.get(path, ""), check)]
    for line in sorted(set(wrong)):
        print(line)
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
