#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which headers cmake/header_chains.py puts into one text, and in which order."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "cmake"))
from header_chains import texts  # noqa: E402


class HeaderChains(unittest.TestCase):
    def chains(self, includes, widely=()):
        """@param includes  for each header the words after its #include lines."""
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for name, words in includes.items():
                    with open(name, "w", encoding="utf-8") as out:
                        out.writelines("#include %s\n" % word for word in words)
                return [("+".join(kind), " ".join(chain)) for kind, chain in
                        texts(list(includes), widely)]
            finally:
                os.chdir(here)

    def test_a_header_comes_after_those_that_it_includes(self):
        self.assertEqual(self.chains({"a": ['"b"'], "b": ['"c"'], "c": []}), [("", "c b a")])
        self.assertEqual(self.chains({"a": ['"b"'], "b": ["<x>"], "c": ['"b"']}),
                         [("", "b a"), ("", "c")])

    def test_headers_that_do_not_include_each_other_are_apart(self):
        self.assertEqual(self.chains({"a": [], "b": []}), [("", "a"), ("", "b")])

    def test_through_others_counts(self):
        # "a" is in a text of its own, because "<x>" is not precompiled for it.
        self.assertEqual(self.chains({"a": [], "b": ['"a"', "<x>"], "c": ['"b"'], "d": ['"c"']}, ["<x>"]),
                         [("", "a"), ("<x>", "b c d")])
        self.assertEqual(self.chains({"a": [], "b": ['"a"'], "c": ['"b"'], "d": ['"b"']}),
                         [("", "a b c"), ("", "d")])

    def test_as_few_texts_as_possible(self):
        # "a" first takes "c"; only if it takes "d" instead can "b" have "c".
        self.assertEqual(self.chains({"a": [], "b": [], "c": ['"a"', '"b"'], "d": ['"a"']}),
                         [("", "a d"), ("", "b c")])

    def test_what_is_precompiled_is_the_same_for_a_text(self):
        self.assertEqual(self.chains({"a": ['"b"'], "b": ["<x>"], "c": ['"b"', "<y>"]},
                                     ["<x>", "<y>", "b"]),
                         [("<x>", "b"), ("<x>+<y>+b", "c"), ("<x>+b", "a")])

    def test_unknown_headers_are_passed_over(self):
        self.assertEqual(self.chains({"a": ['"elsewhere.hpp"', "<cstdint>"]}), [("", "a")])


if __name__ == "__main__":
    unittest.main()
