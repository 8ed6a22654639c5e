#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds comments and documents that are not plain English.

A comment begins with a noun or a verb: not with a relative clause, a pronoun, or words that lean on
the line above. Some words have a plainer one that is meant.

usage: plain_words.py ROOT [FOLDER_OR_FILE...]      exit status 1 and one line a finding
"""

import os
import re
import sys

from source_files import DATA, read, source_files

TOPS = ("arch", "decoder", "ptrace", "server", "test")
DOCUMENTS = ("docs", "README.md", "CONTRIBUTING.md", "SECURITY.md")
KINDS = (".hpp", ".cpp", ".h", ".c", ".py", ".md", ".cmake", ".txt")
EXEMPT = DATA + (os.path.join("test", "lint"),)

# What a comment must not begin with.
OPENER = re.compile(
    r"(Likewise|The same|As (it|they|before|was)\b|As if\b|So (many|much)\b|Of (?!course)"
    r"|What\b(?!ever)|Who\b|Whose\b|It\b|They\b|Those\b|That\b(?! is)|And\b|But\b|Else\b|Nor\b|Neither\b"
    r"|Also\b|Nothing\b|None\b|Dearer\b|Such\b)")
# What has a plainer word, wherever it stands.
WORDS = (
    (re.compile(r"\bof ours\b"), "say whose: the recorder's, the server's"),
    (re.compile(r"\b(is|are|was|were|be|not) let\b(?! go)"), "allowed to, may"),
    (re.compile(r"\b[Nn]othing:"), "nullopt if, empty if, none if"),
    (re.compile(r"\bon the way there\b"), "heading for it"),
    (re.compile(r"\bmade again\b"), "retranslated, repeated"),
    (re.compile(r"\b[Ss]o many\b(?! that)"), "a count has a name: the number of"),
    (re.compile(r"\bbehind\b"), "after, following, beneath, under"),
    (re.compile(r"\bin front of\b"), "before"),
    (re.compile(r"\brows? of state\b"), "pc map entry"),
    (re.compile(r"\bwho is\b"), "a noun: the thread, the caller"),
)


def comments(lines, hash_comments):
    """(number, text, begins) of each line of comment; `begins`: the first line of one."""
    mark = re.compile(r"^\s*# ?(.*)$" if hash_comments else r"^\s*///? ?(.*)$")
    tail = re.compile(r"^.*\S\s+# (.*)$" if hash_comments else r"^.*\S\s*//+<? (.*)$")
    before = False
    for number, line in enumerate(lines, 1):
        whole = mark.match(line)
        if whole and not line.lstrip().startswith(("#!", "///<")):
            yield number, whole.group(1), not before
            before = bool(whole.group(1).strip())
            continue
        before = False
        behind = tail.match(line)
        if behind and not re.search(r'"[^"]*//[^"]*"', line):
            yield number, behind.group(1), not line.lstrip().startswith("///<")


def paragraphs(lines):
    """(number, text) of a document outside of code."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, re.sub(r"`[^`]*`", "`", line)


def findings(path, lines):
    if path.endswith(".md"):
        texts = [(number, text, False) for number, text in paragraphs(lines)]
    else:
        texts = list(comments(lines, path.endswith((".py", ".txt", ".cmake"))))
    for number, text, begins in texts:
        found = OPENER.match(re.sub(r"^(@file|@return|@param \S+) *", "", text)) if begins else None
        if found:
            yield number, 'begins with "%s"' % found.group(0).strip()
        for word, instead in WORDS:
            for each in word.finditer(text):
                yield number, '"%s": %s' % (each.group(0), instead)


def sources(root, tops):
    return source_files(root, tops, KINDS, EXEMPT)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    files = count = 0
    for path in sources(root, sys.argv[2:] or TOPS + DOCUMENTS):
        files += 1
        for number, why in findings(path, read(root, path).split("\n")):
            count += 1
            print("%s:%d: %s" % (path, number, why))
    if not files:
        print("plain_words: no sources below %s" % root)
        return 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
