#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layering check finds each kind of breach, and nothing else."""

import unittest

from layering import breach


class Layering(unittest.TestCase):
    def refused(self, path, quote, header):
        self.assertIsNotNone(breach(path, quote, header), (path, header))

    def allowed(self, path, quote, header):
        self.assertIsNone(breach(path, quote, header), (path, header))

    def test_downwards_only(self):
        self.allowed("server/rsp/hex.cpp", '"', "arch/base/result.hpp")
        self.allowed("ptrace/tracee/a.cpp", '"', "decoder/trace/record.hpp")
        self.allowed("arch/x86/insn.cpp", '"', "arch/insn.hpp")
        self.refused("arch/x86/insn.cpp", '"', "decoder/trace/record.hpp")
        self.refused("decoder/bts/a.cpp", '"', "ptrace/tracee/thread_id.hpp")
        self.refused("ptrace/tracee/a.hpp", '"', "server/target/target.hpp")

    def test_rooms_in_their_order(self):
        self.allowed("ptrace/engine/a.cpp", '"', "ptrace/tracee/thread.hpp")
        self.refused("ptrace/tracee/a.cpp", '"', "ptrace/engine/engine.hpp")
        self.refused("ptrace/tracee/a.cpp", '"', "ptrace/codecache/space/cache_space.hpp")
        self.refused("decoder/trace/a.cpp", '"', "decoder/bts/bts_history.hpp")
        self.refused("server/session/a.cpp", '"', "server/handlers/handlers.hpp")
        self.refused("arch/a.hpp", '"', "arch/x86/raw_registers.hpp")

    def test_interfaces_are_for_whom_they_are_named(self):
        self.allowed("ptrace/tracee/a.cpp", '"', "ptrace/source/branch_source.hpp")
        self.refused("ptrace/tracee/a.cpp", '"', "ptrace/source/step_source.hpp")
        self.refused("ptrace/perf/a.cpp", '"', "ptrace/source/branch_source.hpp")

    def test_one_cpu_is_known_by_few(self):
        self.allowed("ptrace/tracee/a.cpp", '"', "arch/cpu/registers.hpp")
        self.allowed("ptrace/tracee/a.cpp", '"', "arch/base/page.hpp")
        self.allowed("ptrace/tracee/a.cpp", '"', "arch/insn.hpp")
        self.allowed("server/cli/decode.hpp", '"', "arch/x86/bts/ds_area.hpp")
        self.refused("ptrace/tracee/a.cpp", '"', "arch/x86/raw_registers.hpp")
        self.refused("arch/x86/a.cpp", '"', "arch/cpu/registers.hpp")

    def test_every_room_has_its_place(self):
        self.refused("ptrace/attic/a.cpp", '"', "ptrace/os/procfs.hpp")

    def test_paths_from_the_root(self):
        self.refused("arch/x86/insn.cpp", '"', "insn.hpp")

    def test_hidden_libraries(self):
        self.allowed("arch/x86/insn.cpp", "<", "capstone/capstone.h")
        self.refused("arch/insn.hpp", "<", "capstone/capstone.h")
        self.refused("arch/insn.hpp", "<", "Zydis/Zydis.h")
        self.refused("server/x.hpp", "<", "pugixml.hpp")

    def test_asio_in_the_transport_only(self):
        self.allowed("server/transport/loop.hpp", "<", "boost/asio.hpp")
        self.allowed("server/main.cpp", "<", "boost/asio/io_context.hpp")
        self.refused("server/session/session.cpp", "<", "boost/asio.hpp")
        self.refused("ptrace/os/a.cpp", "<", "boost/asio.hpp")

    def test_no_system_calls_in_arch_and_decoder(self):
        self.refused("arch/x86/a.cpp", "<", "sys/ptrace.h")
        self.refused("decoder/file/a.cpp", "<", "linux/perf_event.h")
        self.refused("decoder/file/a.cpp", "<", "unistd.h")
        self.allowed("decoder/file/a.cpp", "<", "elf.h")
        self.allowed("ptrace/os/a.cpp", "<", "sys/ptrace.h")


if __name__ == "__main__":
    unittest.main()
