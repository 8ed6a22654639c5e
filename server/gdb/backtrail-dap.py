# SPDX-License-Identifier: Apache-2.0
"""Adds the requests stepBack and reverseContinue to gdb's server of the Debug Adapter Protocol.

    gdb -i dap -x /usr/share/backtrail/backtrail-dap.py

They need a target that goes backwards: `backtrail replay`, or a program of `backtrail serve` after
`monitor history on` or `record btrace`. This script types the latter when a program of the target
`| backtrail serve ...` stops for the first time (not if $BACKTRAIL_DAP_RECORD is 0).
"""

import os
import re

import gdb
from gdb.dap.server import _commands, capability, request, send_gdb, send_gdb_with_response
from gdb.dap.startup import DAPException


def is_serve():
    """Whether the target is a living program of a Backtrail server, `| backtrail serve ...`."""
    target = getattr(gdb.selected_inferior().connection, "details", None) or ""
    return bool(re.match(r"\|.*backtrail\S* serve ", target))


def want_a_past():
    """Such a server goes back at any time, but stops at once where it has recorded nothing."""
    if not is_serve() or gdb.current_recording() is not None:
        return
    if "No history" in gdb.execute("monitor history", to_string=True):
        raise DAPException("the program cannot go backwards: nothing is recorded "
                           "(type monitor history on, or record btrace)")


def in_order(direction):
    try:
        gdb.execute("set exec-direction " + direction, to_string=True)
    except gdb.error as error:
        raise DAPException("this target cannot go backwards: %s" % error) from error


def go_on_forwards():
    """Ends what goes backwards, unless the program runs; its stop comes later then."""
    thread = gdb.selected_thread()
    if thread is None or thread.is_running():
        return
    try:
        in_order("forward")
    except DAPException:
        pass  # the target is gone


def backwards(command, arguments):
    """Handles gdb's own request, `next` or `continue`, in the reverse direction."""
    send_gdb_with_response(want_a_past)
    send_gdb_with_response(lambda: in_order("reverse"))
    try:
        return _commands[command](**arguments)
    finally:
        # After the command, which gdb's thread runs first: a command that fails does not stop.
        send_gdb(go_on_forwards)


@capability("supportsStepBack")
@request("stepBack", on_dap_thread=True)
def step_back(*, threadId: int, **args):
    backwards("next", dict(args, threadId=threadId))


@request("reverseContinue", on_dap_thread=True)
def reverse_continue(*, threadId: int, **args):
    backwards("continue", dict(args, threadId=threadId))


# The processes that were recorded: `record stop` is the user's word then.
recorded = set()


def record():
    """Types `record btrace` for a living program of a Backtrail server, once."""
    inferior = gdb.selected_inferior()
    if not is_serve() or inferior.pid in recorded:
        return
    recorded.add(inferior.pid)
    if gdb.current_recording() is not None:
        return
    try:
        gdb.execute("record btrace", to_string=True)
    except gdb.error:
        pass  # the program has ended


def on_stop(_event):
    gdb.post_event(go_on_forwards)
    if os.environ.get("BACKTRAIL_DAP_RECORD") != "0":
        gdb.post_event(record)


gdb.events.stop.connect(on_stop)
