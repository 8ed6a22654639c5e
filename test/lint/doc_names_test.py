#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of names in docs finds what is missing, and nothing else."""

import os
import tempfile
import unittest

from doc_names import (Tree, anchors, broken_link, checked_rows, rows, shape, slug, unknown_name,
                       unowned, untested)


class DocNames(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.put("ptrace/cache/code_cache.hpp", "class CodeCache { void split_at(); };")
        self.put("test/unit/a_test.cpp", "TEST(Aa, One) {}\n")
        self.put("CMakeLists.txt", "option(BT_TESTS)\n")
        self.put("docs/a.md", "# One page\n\n## Its `Second` part\n")
        self.tree = Tree(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def put(self, path, text):
        whole = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as out:
            out.write(text)

    def unknown(self, text):
        return unknown_name(self.tree, text)

    def test_files_are_known_by_name_or_by_path(self):
        for path in ("code_cache.hpp", "cache/code_cache.hpp", "ptrace/cache/", "docs/a.md"):
            self.assertIsNone(self.unknown(path), path)
        for path in ("gone.hpp", "elsewhere/code_cache.hpp", "ptrace/gone/", "docs/b.md"):
            self.assertIn("no file", self.unknown(path), path)

    def test_tests_are_known_by_suite_and_case(self):
        for name in ("Aa.One", "Aa.*"):
            self.assertIsNone(self.unknown(name), name)
        for name in ("Aa.Two", "Cc.*"):
            self.assertIn("no test", self.unknown(name), name)

    def test_identifiers_are_words_of_sources(self):
        for name in ("CodeCache", "CodeCache::split_at", "split_at()", "BT_TESTS", "plain words",
                     "x", ".cpp"):
            self.assertIsNone(self.unknown(name), name)
        for name in ("CodeStash", "CodeCache::merge_at", "merge_at()", "kGone"):
            self.assertIn("no source", self.unknown(name), name)
        self.assertIsNone(self.unknown("VmSize"))

    def test_links_lead_to_pages_and_headings(self):
        for link in ("a.md", "a.md#one-page", "#its-second-part", "https://x.org/y", "../docs"):
            self.assertIsNone(broken_link(self.tree, "docs/a.md", link, {}), link)
        for link in ("b.md", "a.md#third", "#third"):
            self.assertIsNotNone(broken_link(self.tree, "docs/a.md", link, {}), link)

    def test_anchors_are_those_of_headings(self):
        self.assertEqual(slug(" What, and *why*? "), "what-and-why")
        self.assertEqual(anchors("# A b\n```\n# no heading\n```\n"), {"a-b"})

    def test_pages_are_narrow_and_sections_short(self):
        long_section = "# A\n\n" + "word\n" * 301
        self.assertEqual(len(shape("docs/codecache/a.md", long_section)), 1)
        self.assertEqual(shape("docs/decisions/a.md", long_section), [])
        self.assertEqual(len(shape("docs/a.md", "x" * 101 + "\n|" + "x" * 200)), 1)
        self.assertEqual(shape("docs/codecache/a.md", "# A\n```\n" + "word\n" * 301 + "```\n"), [])

    def test_terms_are_owned_once(self):
        table = "| term | in the code | owner | meaning |\n|---|---|---|---|\n"
        good = table + "| cache | `CodeCache` | `code_cache.hpp` | x |\n"
        self.assertEqual(unowned(self.tree, good), [])
        self.assertEqual(len(unowned(self.tree, good + good)), 1)
        self.assertEqual(len(unowned(self.tree, good.replace("CodeCache", "CodeStash"))), 1)

    def test_invariants_have_a_test(self):
        table = "| invariant | owner | test |\n|---|---|---|\n| a | `a.hpp` | `Aa.One` |\n"
        self.assertEqual(untested(table), [])
        self.assertEqual(len(untested(table + "| b | `b.hpp` | |\n")), 1)
        self.assertEqual(len(list(rows(table))), 1)

    def test_pages_without_their_table_do_not_pass(self):
        table = "| invariant | owner | test |\n|---|---|---|\n| a | `a.hpp` | `Aa.One` |\n"
        self.assertEqual(checked_rows(table, untested), [])
        for page in ("", "# Moved\n", "| invariant | owner | test |\n|---|---|---|\n"):
            self.assertEqual(len(checked_rows(page, untested)), 1)


if __name__ == "__main__":
    unittest.main()
