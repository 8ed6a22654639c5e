#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cmake/source_groups.py puts together, and what not."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "cmake"))
from source_groups import groups  # noqa: E402

UNNAMED = "namespace x {\nnamespace {\n%s\n}  // namespace\n}  // namespace x\n"


class SourceGroups(unittest.TestCase):
    def grouped(self, texts, most=8):
        """@param texts  (kind, text) of files a, b, c...; @return their groups as words."""
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for letter, (kind, text) in zip("abcdef", texts):
                path = os.path.join(folder, letter + ".cpp")
                with open(path, "w", encoding="utf-8") as out:
                    out.write(text)
                files.append((kind, path, letter))
            return ["".join(members) for members in groups(files, most)]

    def test_files_of_one_kind_are_together(self):
        self.assertEqual(self.grouped([("t", ""), ("t", ""), ("t", "")]), ["abc"])
        self.assertEqual(self.grouped([("t", ""), ("u", ""), ("t", "")]), ["ac", "b"])

    def test_no_more_than_asked_for(self):
        self.assertEqual(self.grouped([("t", "")] * 5, most=2), ["ab", "cd", "e"])

    def test_groups_of_a_kind_are_of_equal_sizes(self):
        self.assertEqual(self.grouped([("t", "")] * 6, most=5), ["abc", "def"])
        self.assertEqual(self.grouped([("t", "")] * 5 + [("u", "")], most=4), ["abc", "de", "f"])

    def test_internal_names_that_collide_are_apart(self):
        for text in ("int f(int a) {", "constexpr int f = 1;", "struct f {", "class f final {",
                     "const Map<int, Long> f{"):
            self.assertEqual(self.grouped([("t", UNNAMED % "bool f() {"), ("t", UNNAMED % text)]),
                             ["a", "b"], text)
        self.assertEqual(self.grouped([("t", "static int f() {\n}\n"), ("t", UNNAMED % "int f;")]),
                         ["a", "b"])
        self.assertEqual(self.grouped([("t", "int main() {\n"), ("t", "int main(int a) {\n")]),
                         ["a", "b"])
        self.assertEqual(self.grouped([("t", "#define F 1\n"), ("t", "#define F 2\n")]), ["a", "b"])

    def test_others_do_not(self):
        self.assertEqual(self.grouped([("t", UNNAMED % "int f() {"), ("t", UNNAMED % "int g() {")]),
                         ["ab"])
        # Named namespaces and tests have names of their own; equal aliases are the same.
        self.assertEqual(self.grouped([("t", "int f() {\n}\n"), ("t", UNNAMED % "int f() {")]), ["ab"])
        self.assertEqual(self.grouped([("t", UNNAMED % "TEST(A, B) {"), ("t", UNNAMED % "TEST(A, C) {")]),
                         ["ab"])
        self.assertEqual(self.grouped([("t", "using A = int;\n"), ("t", "using A = int;\n")]), ["ab"])
        # An overload for a type of each file's own.
        overload = UNNAMED % "void PrintTo(const A& a, std::ostream* out) {"
        self.assertEqual(self.grouped([("t", overload), ("t", overload)]), ["ab"])
        self.assertEqual(self.grouped([("t", "using A = int;\n"), ("t", "using A = long;\n")]), ["a", "b"])


if __name__ == "__main__":
    unittest.main()
