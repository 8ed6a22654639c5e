#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of plain words finds each kind of finding, and nothing else."""

import os
import tempfile
import unittest

from plain_words import findings, sources


class PlainWords(unittest.TestCase):
    def found(self, path, *lines):
        numbers = [number for number, _ in findings(path, list(lines))]
        self.assertTrue(numbers, lines)
        return numbers

    def plain(self, path, *lines):
        self.assertEqual(list(findings(path, list(lines))), [], lines)

    def test_openers(self):
        for opener in ("What it holds.", "Likewise for reads.", "The same for writes.",
                       "As before.", "As if it ran.", "So many bytes.", "Of the thread.",
                       "Who waits.", "Whose it is.", "It is set.", "They are set.",
                       "Those in use.", "That thread.", "And the mask.", "But not zero.",
                       "Else zero.", "Nor the mask.", "Neither of them.", "Also set.",
                       "Nothing moves.", "None of them.", "Dearer than a stop.", "Such a thread."):
            self.found("a.hpp", "/// " + opener)

    def test_words(self):
        for text in ("A thread of ours.", "A call that is let pass.", "Returns nothing: no map.",
                     "A thread on the way there.", "A block that is made again.",
                     "Takes so many bytes.", "The code behind the call.", "A jump in front of it.",
                     "A row of state.", "The one who is waiting."):
            self.found("a.cpp", "// " + text)

    def test_every_kind_of_comment(self):
        self.found("a.hpp", "int a = 0;  ///< What it holds.")
        self.found("a.cpp", "call();  // What it holds.")
        self.found("a.hpp", "/// @return What it holds.")
        self.found("a.hpp", "/// @param size  What it holds.")
        self.found("a.py", "# What it holds.")
        self.found("CMakeLists.txt", "set(A 1)  # What it holds.")

    def test_tells_the_line(self):
        self.assertEqual(self.found("a.cpp", "int a;", "", "// Code behind it."), [3])

    def test_openers_of_later_paragraphs(self):
        self.assertEqual(self.found("a.hpp", "/// The size.", "///", "/// What it holds."), [3])

    def test_plain_sentences(self):
        self.plain("a.hpp", "/// Returns the size in bytes; nullopt if it is not known.")
        self.plain("a.hpp", "/// Whatever the CPU is, the size is the same.")
        self.plain("a.hpp", "/// Of course.")
        self.plain("a.hpp", "/// Italic text.")
        self.plain("a.hpp", "/// Threads may be so many that they do not fit.")
        self.plain("a.hpp", "int a = 0;  ///< Size in bytes.")

    def test_a_line_that_goes_on_may_begin_with_any_word(self):
        self.plain("a.hpp", "/// The caller knows", "/// What the size is.")
        self.plain("a.hpp", "int a = 0;  ///< The caller knows", "            ///< What it holds.")

    def test_code_and_strings(self):
        self.plain("a.cpp", "int behind = 0;")
        self.plain("a.cpp", 'say("What is behind?");')
        self.plain("a.cpp", 'open("http://behind");')
        self.plain("a.py", 'text = "What is behind"')

    def test_documents(self):
        self.assertEqual(self.found("a.md", "Text.", "The code behind it."), [2])
        self.plain("a.md", "What it holds is a sentence of a document.")
        self.plain("a.md", "The field `behind` is an address.")
        self.plain("a.md", "```", "the code behind it", "```", "Text.")
        self.assertEqual(self.found("a.md", "```", "behind", "```", "behind"), [4])

    def test_which_files(self):
        with tempfile.TemporaryDirectory() as root:
            for path in ("arch/a.hpp", "arch/a.bin", "test/data/b.txt", "test/lint/c.py",
                         "test/d.py", "README.md"):
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8"):
                    pass
            self.assertEqual(sorted(sources(root, ("arch", "test", "README.md", "docs"))),
                             ["README.md", "arch/a.hpp", "test/d.py"])


if __name__ == "__main__":
    unittest.main()
