# SPDX-License-Identifier: Apache-2.0
"""The files that the lints look at."""

import os

# Bytes that are data.
DATA = (os.path.join("test", "data"), os.path.join("test", "fuzz", "corpus"))


def source_files(root, tops, endings, exempt=()):
    """The paths, relative to `root`, of the files below each of `tops` whose names end with one of
    `endings`, in order. Files that are named in `tops` are among them, whatever their ending;
    folders in `exempt` are not."""
    for top in tops:
        full = os.path.join(root, top)
        if os.path.isfile(full):
            yield top
        for folder, folders, names in os.walk(full):
            folders[:] = sorted(each for each in folders if os.path.relpath(
                os.path.join(folder, each), root) not in exempt)
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(folder, name), root)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as text:
        return text.read()
