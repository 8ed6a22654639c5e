# SPDX-License-Identifier: Apache-2.0
"""Commands for gdb: `trail crash FILE` opens a crash file, `trail summary` tells what happened last.

    source /usr/share/backtrail/backtrail-gdb.py        (in ~/.gdbinit, for example)
"""

import os
import re
import shlex
import shutil
import subprocess

import gdb

# Defined only while gdb reads the file.
HERE = os.path.dirname(os.path.abspath(__file__))


def program():
    """The backtrail program: $BACKTRAIL, else the one of this file's installation, else of PATH."""
    beside = os.path.join(HERE, "..", "..", "bin", "backtrail")
    for name in (os.environ.get("BACKTRAIL"), beside, shutil.which("backtrail")):
        if name and os.access(name, os.X_OK):
            return os.path.abspath(name)
    raise gdb.GdbError("backtrail is not on PATH; $BACKTRAIL may name it")


def crash_file():
    """The crash file that gdb's target replays; None if it replays none."""
    connection = gdb.selected_inferior().connection
    details = (getattr(connection, "details", None) or "").lstrip("| ")
    words = shlex.split(details)
    return words[-1] if "replay" in words[1:-1] else None


def summary_of(file):
    done = subprocess.run([program(), "report", "--summary", file], text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    gdb.write(done.stdout)


class Trail(gdb.Command):
    """What happened, by Backtrail's trace."""

    def __init__(self):
        super().__init__("trail", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE, True)


class TrailCrash(gdb.Command):
    """Open a crash file of `backtrail record`, or an archive of `backtrail pack`.
Usage: trail crash FILE
reverse-step and its kin work then, and show the values that follow from the trace."""

    def __init__(self):
        super().__init__("trail crash", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if len(words) != 1:
            raise gdb.GdbError("Usage: trail crash FILE")
        file = os.path.abspath(os.path.expanduser(words[0]))
        if not os.path.exists(file):
            raise gdb.GdbError("%s: no such file" % file)
        gdb.execute("target remote | %s replay - %s" % (shlex.quote(program()), shlex.quote(file)),
                    from_tty=from_tty)
        summary_of(file)


class TrailSummary(gdb.Command):
    """Tell what happened last: how a crash file ended, or the last calls of a recording.
Usage: trail summary [CALLS]"""

    def __init__(self):
        super().__init__("trail summary", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        calls = argument.strip() or "20"
        if not re.fullmatch(r"[1-9][0-9]{0,5}", calls):
            raise gdb.GdbError("Usage: trail summary [CALLS]")
        file = crash_file()
        if file:
            summary_of(file)
        elif gdb.current_recording() is None:
            raise gdb.GdbError("nothing is recorded here: type `record btrace`, or `trail crash FILE`")
        else:
            gdb.execute("info record", from_tty=from_tty)
            gdb.write(last_calls(int(calls)))


def last_calls(count):
    """The last calls of the recording, as `record function-call-history /ilc` prints them."""
    size = gdb.parameter("record function-call-history-size")
    gdb.execute("set record function-call-history-size %d" % count)
    try:
        gdb.execute("record goto end", to_string=True)
    except gdb.error:
        pass  # it is there already
    try:
        return gdb.execute("record function-call-history /ilc", to_string=True)
    finally:
        gdb.execute("set record function-call-history-size %s" % (size if size is not None else 0))


Trail()
TrailCrash()
TrailSummary()
