#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cross build knows which files depend on the CPU."""

import os
import tempfile
import unittest

from cross_build import Includes


class DependsOnCpu(unittest.TestCase):
    def test_through_others_too(self):
        texts = {
            "decoder/a.hpp": '#include <string>\n#include "arch/base/page.hpp"\n',
            "decoder/b.hpp": '#include "arch/cpu/registers.hpp"\n',
            "decoder/c.cpp": '#include "decoder/a.hpp"\n#include "decoder/not_there.hpp"\n',
            "decoder/d.cpp": '#include "decoder/a.hpp"\n#include "decoder/e.hpp"\n',
            "decoder/e.hpp": '#include "decoder/b.hpp"\n',
            "decoder/f.cpp": '#include "arch/x86/bts/ds_area.hpp"\n',
        }
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "decoder"))
            for path, text in texts.items():
                with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                    out.write(text)
            includes = Includes(root)
            depend = [path for path in texts if includes.depends_on_cpu(path)]
        self.assertEqual(depend, ["decoder/b.hpp", "decoder/d.cpp", "decoder/e.hpp",
                                  "decoder/f.cpp"])


if __name__ == "__main__":
    unittest.main()
