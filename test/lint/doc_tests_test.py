#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of tests named in docs finds what is missing, and nothing else."""

import unittest

from doc_tests import complaints, left_out


class DocTests(unittest.TestCase):
    def test_finds_what_is_missing(self):
        page = "| fact | test |\n|---|---|\n| a | `Aa.One` |\n| b | `Aa.Two` |\n| c | none |\n"
        wrong = complaints(page, {"Aa.One"})
        self.assertEqual(len(wrong), 2)
        self.assertIn("Aa.Two", wrong[0])
        self.assertIn("line 5", wrong[1])

    def test_a_wildcard_is_no_test(self):
        self.assertEqual(len(complaints("| a | `Aa.*` |", {"Aa.One"})), 1)

    def test_names_outside_of_tables_count_too(self):
        table = "| a | `Aa.One` |\n"
        self.assertEqual(len(complaints(table + "shown by `Bb.Gone`", {"Aa.One"})), 1)
        self.assertEqual(complaints(table + "`decoder::Record` and text", {"Aa.One"}), [])

    def test_pages_without_their_table_do_not_pass(self):
        for page in ("", "# Moved\n", "| fact | test |\n|---|---|\n"):
            self.assertEqual(complaints(page, set()), ["there is no table"])

    def test_finds_rows_that_are_left_out(self):
        page = "| 1 | a | `SimulatedKernel.Row1` |\n| 2 | b | `Aa.One` |\n"
        self.assertEqual(left_out(page, {"SimulatedKernel.Row1", "Aa.One"}), [])
        self.assertIn("Row7", left_out(page, {"SimulatedKernel.Row1", "SimulatedKernel.Row7"})[0])
        self.assertEqual(len(left_out(page + "| 4 | c | `Aa.One` |\n", set())), 1)
        self.assertEqual(len(left_out(page + "| 2 | c | `Aa.One` |\n", set())), 1)


if __name__ == "__main__":
    unittest.main()
