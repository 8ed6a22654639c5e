# SPDX-License-Identifier: Apache-2.0
"""Prints what a program executes between two places, by stepping it with plain gdb.

A gdb script: `gdb -batch -x native_steps.py -ex 'native-steps BEGIN END' PROGRAM`. BEGIN and END are
locations of `break`. Prints the stack pointer at BEGIN, one line for each instruction, one for each
stretch of a function (like `record function-call-history /i`), one for each function entered (with
its stack pointer), and one for each frame at the end:

    S 0x7fffffffe000
    I 0x555555555131
    F main 1 9
    C main 0x7fffffffdff8
    B main

END may be a signal (SIGSEGV): then stepping ends at the instruction that causes it.
"""

import re

import gdb

LIMIT = 60000
ENDS_IN_CALL = re.compile(r"\b(call|callq|lcall)\b")
ENDS_IN_RETURN = re.compile(r"\b(ret|retq|iret|iretq|sysret)\b")
ENDS_IN_JUMP = re.compile(r"\b(j[a-z]+|loop[a-z]*|notrack jmp)\b")
REPEATED = re.compile(r"^(rep|repz|repnz|repe|repne)\b(?! ret)")


class Instruction:
    """The instruction at an address."""

    def __init__(self, pc):
        self.pc = pc
        text = gdb.selected_frame().architecture().disassemble(pc)[0]
        self.size = text["length"]
        code = text["asm"]
        self.repeats = bool(REPEATED.match(code))
        self.is_call = bool(ENDS_IN_CALL.search(code))
        self.is_return = bool(ENDS_IN_RETURN.search(code))
        self.is_jump = bool(ENDS_IN_JUMP.search(code)) and not self.is_call
        # The outermost function: those within it are inlined into it. A lambda's block lies outside
        # that of the function it is written in.
        block, inner, function = None, gdb.block_for_pc(pc), None
        while inner is not None and inner.start <= pc < inner.end:
            if inner.function is not None:
                block, function = inner, inner.function
            inner = inner.superblock
        start = None
        found = re.match(r"(.+?)(?: \+ (\d+))? in section ",
                         gdb.execute("info symbol %#x" % pc, to_string=True))
        minimal = found.group(1) if found else None
        if found:
            start = pc - int(found.group(2) or 0)
        if function is not None:
            start = block.start
        self.identity = (minimal, function.name if function is not None else None)
        self.name = function.name if function is not None else (minimal or "??")
        self.is_start = start == pc

    def was_executed(self, after, signalled):
        """Returns True if a step from here to `after` completed the instruction. `signalled`: the
        step also delivered a signal, which enters a handler instead."""
        if after == self.pc:
            return False        # A signal came first, or more iterations follow.
        return not (signalled and after != self.pc + self.size and not self.is_jump
                    and not self.is_call and not self.is_return)


class Stretches:
    """Splits a run of instructions where control enters or leaves a function."""

    def __init__(self):
        self.list = []      # [name, first, last]
        self.last = None
        self.count = 0

    def add(self, instruction):
        self.count += 1
        if self.last is None or self.is_boundary(instruction):
            self.list.append([instruction.name, self.count, self.count])
        self.list[-1][2] = self.count
        self.last = instruction

    def is_boundary(self, now):
        before = self.last
        if before.is_return:
            return True
        if before.is_call and now.pc != before.pc + before.size:
            return True
        if before.is_jump and now.is_start:
            return True
        return now.identity != before.identity


def location_address(location):
    breakpoint = gdb.Breakpoint(location, internal=True)
    listing = gdb.execute("maint info breakpoints %d" % breakpoint.number, to_string=True)
    addresses = re.findall(r"0x[0-9a-f]{6,}", listing)
    breakpoint.delete()
    return int(addresses[0], 16)


class NativeSteps(gdb.Command):
    """native-steps BEGIN END"""

    def __init__(self):
        super().__init__("native-steps", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        begin, end = gdb.string_to_argv(argument)
        ends_by_signal = end.startswith("SIG")
        # Stepping enters the handlers of signals that stop, and steps over those of the others.
        gdb.execute("handle all stop print pass", to_string=True)
        gdb.execute("tbreak " + begin, to_string=True)
        gdb.execute("run", to_string=True)
        end_pc = None if ends_by_signal else location_address(end)

        by_signal = []
        gdb.events.stop.connect(lambda event: by_signal.append(
            event.stop_signal if isinstance(event, gdb.SignalEvent) else ""))
        known, stretches, steps, calls = {}, Stretches(), [], []
        print("S %#x" % int(gdb.parse_and_eval("(unsigned long)$sp")))
        pc = int(gdb.parse_and_eval("(unsigned long)$pc"))
        while pc != end_pc and len(steps) < LIMIT:
            if pc not in known:
                try:
                    known[pc] = Instruction(pc)
                except gdb.MemoryError:
                    if not ends_by_signal:
                        raise
                    end_pc = pc     # No instruction is there: the next step would end with the signal.
                    break
            now, signalled = known[pc], by_signal[-1:] not in ([], [""])
            if now.is_start:
                calls.append((now.name, int(gdb.parse_and_eval("(unsigned long)$sp"))))
            gdb.execute("stepi", to_string=True)
            after = int(gdb.parse_and_eval("(unsigned long)$pc"))
            if ends_by_signal and by_signal[-1:] == [end]:
                end_pc = pc     # The last instruction was not executed.
                break
            if now.was_executed(after, signalled):
                steps.append(pc)
                stretches.add(now)
            pc = after
        if pc != end_pc:
            raise gdb.GdbError("%s was not reached in %d steps" % (end, LIMIT))
        for step in steps:
            print("I %#x" % step)
        for name, first, last in stretches.list:
            print("F %s %d %d" % (name.replace(" ", ""), first, last))
        for name, stack_pointer in calls:
            print("C %s %#x" % (name.replace(" ", ""), stack_pointer))
        frame = gdb.selected_frame()
        while frame is not None:
            print("B %s" % (frame.name() or "??").replace(" ", ""))
            frame = frame.older()


NativeSteps()
