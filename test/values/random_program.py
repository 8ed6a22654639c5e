#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks recovered values in random programs of many kinds of instructions with values_oracle.

usage: random_program.py ORACLE FOLDER FIRST_SEED COUNT

Each program is assembled into FOLDER and single-stepped; every value that is claimed to be known
must be true. Exit status 1 if one was not; the program of that seed is kept.
"""

import os
import random
import subprocess
import sys

R64 = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp"] + ["r%d" % i for i in range(8, 15)]
R32 = ["eax", "ebx", "ecx", "edx", "esi", "edi", "ebp"] + ["r%dd" % i for i in range(8, 15)]
R16 = ["ax", "bx", "cx", "dx", "si", "di", "bp"] + ["r%dw" % i for i in range(8, 15)]
R8 = ["al", "bl", "cl", "dl", "sil", "dil", "bpl"] + ["r%db" % i for i in range(8, 15)]
HIGH = ["ah", "bh", "ch", "dh"]
CONDITIONS = "o no b ae e ne be a s ns p np l ge le g".split()
SIZES = {"q": R64, "l": R32, "w": R16, "b": R8}
BITS = {"q": 64, "l": 32, "w": 16, "b": 8}


class Program:
    def __init__(self, seed, avx, avx512):
        self.r = random.Random(seed)
        self.avx = avx
        self.avx512 = avx512
        self.lines = []
        self.labels = 0
        self.depth = 0

    def put(self, text, *args):
        self.lines.append("    " + text.format(*args))

    def label(self):
        self.labels += 1
        return "L%d" % self.labels

    def pick(self, words):
        if isinstance(words, str):
            words = words.split()
        return self.r.choice(words)

    def reg(self, size):
        return "%" + self.pick(SIZES[size])

    def low(self, size):
        """Returns a register for an operand of that size, which may be a high byte."""
        if size == "b" and self.r.random() < 0.2:
            return "%" + self.pick(HIGH)
        return self.reg(size)

    def imm(self, size):
        if self.r.random() < 0.4:
            return "$%d" % self.r.randint(-128, 127)
        bits = min(BITS[size], 32)
        return "$%d" % self.r.randint(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    def mem(self):
        """Returns an operand in the program's own memory, perhaps with an index."""
        kind = self.r.random()
        if kind < 0.4:
            return "%d(%%r15)" % self.r.randrange(0, 400, self.pick([1, 4, 8, 8]))
        if kind < 0.55:
            return "data+%d(%%rip)" % self.r.randrange(0, 400, self.pick([1, 8]))
        if kind < 0.75:
            return "%d(%%rsp)" % -self.r.randrange(8, 128, 8)
        index = self.pick("rax rbx rcx rdx rsi rdi r8 r9 r13".split())
        self.put("and ${0}, %{1}", self.pick([7, 15, 63]), index)
        return "%d(%%r15,%%%s,%d)" % (self.r.randrange(0, 300), index, self.pick([1, 2, 4]))

    def operand(self, size):
        return self.mem() if self.r.random() < 0.4 else self.low_plain(size)

    def low_plain(self, size):
        return self.reg(size)

    def arithmetic(self):
        size = self.pick("q l q l w b")
        op = self.pick("add sub and or xor cmp test adc sbb mov add sub mov")
        form = self.r.random()
        if form < 0.3:
            self.put("{0}{1} {2}, {3}", op, size, self.imm(size), self.operand(size))
        elif form < 0.5:
            self.put("{0}{1} {2}, {3}", op, size, self.reg(size), self.mem())
        elif form < 0.7 and op != "test":
            self.put("{0}{1} {2}, {3}", op, size, self.mem(), self.reg(size))
        elif size == "b" and self.r.random() < 0.3:
            self.put("{0}b %{1}, %{2}", op, self.pick(HIGH), self.pick(HIGH + ["al", "dl"]))
        else:
            self.put("{0}{1} {2}, {3}", op, size, self.reg(size), self.reg(size))

    def unary(self):
        size = self.pick("q l w b")
        self.put("{0}{1} {2}", self.pick("inc dec neg not"), size, self.operand(size))

    def shift(self):
        size = self.pick("q l q l w b")
        op = self.pick("shl shr sar rol ror rcl rcr")
        count = "%cl" if self.r.random() < 0.3 else "$%d" % self.r.randint(0, 35)
        self.put("{0}{1} {2}, {3}", op, size, count, self.operand(size))

    def extend(self):
        which = self.pick("movzbl movzbq movzwl movzwq movsbl movsbq movswl movswq movslq")
        source = {"b": "b", "w": "w", "l": "l"}[which[4]]
        target = {"l": "l", "q": "q"}[which[5]]
        self.put("{0} {1}, {2}", which, self.operand(source), self.reg(target))

    def accumulator(self):
        self.put(self.pick("cbtw cwtl cltq cwtd cltd cqto lahf sahf cmc clc stc"))

    def conditional(self):
        size = self.pick("q l w")
        c = self.pick(CONDITIONS)
        if self.r.random() < 0.5:
            self.put("cmov{0}{1} {2}, {3}", c, size, self.operand(size), self.reg(size))
        else:
            self.put("set{0} {1}", c, self.operand("b"))

    def multiply(self):
        size = self.pick("q l")
        kind = self.r.random()
        if kind < 0.3:
            self.put("imul{0} {1}, {2}", size, self.operand(size), self.reg(size))
        elif kind < 0.6:
            self.put("imul{0} ${1}, {2}, {3}", size, self.r.randint(-99, 99), self.operand(size),
                     self.reg(size))
        elif kind < 0.8:
            self.put("{0}{1} {2}", self.pick("mul imul"), self.pick("q l w b"), "%r13" if 0 else "8(%r15)")
        else:
            by = self.pick("rbx rsi rdi r8")
            self.put("or $1, %{0}", by)
            self.put(self.pick(["xor %edx, %edx\n    div{0} %{1}", "movabs $0x123456789, %rax\n    cqto\n    idiv{0} %{1}"]), "q", by)

    def bits(self):
        size = self.pick("q l")
        kind = self.r.random()
        if kind < 0.3:
            self.put("{0}{1} {2}, {3}", self.pick("bsf bsr popcnt"), size, self.operand(size),
                     self.reg(size))
        elif kind < 0.6:
            self.put("{0}{1} ${2}, {3}", self.pick("bt bts btr btc"), size, self.r.randint(0, 70),
                     self.operand(size))
        elif kind < 0.7:
            self.put("{0}{1} {2}, {3}", self.pick("bt bts btr btc"), size, self.reg(size),
                     self.reg(size))
        elif kind < 0.85:
            self.put("{0}{1} {2}, {3}, {4}", self.pick("shld shrd"), size,
                     self.pick(["$3", "$17", "%cl"]), self.reg(size), self.operand(size))
        else:
            self.put("bswap{0} {1}", size, self.reg(size))

    def newer(self):
        if not self.avx:
            return
        size = self.pick("q l")
        a, b, c = self.reg(size), self.reg(size), self.reg(size)
        self.put(self.pick([
            "andn {1}, {2}, {3}", "shlx {1}, {2}, {3}", "shrx {1}, {2}, {3}", "sarx {1}, {2}, {3}",
            "rorx $5, {2}, {3}", "blsr {1}, {2}", "blsi {1}, {2}", "blsmsk {1}, {2}",
            "tzcnt {1}, {2}", "lzcnt {1}, {2}", "mulx {1}, {2}, {3}", "bextr {1}, {2}, {3}",
            "pdep {1}, {2}, {3}", "bzhi {1}, {2}, {3}", "movbe{0} 16(%r15), {2}",
            "movbe{0} {1}, 24(%r15)", "adcx {1}, {2}", "adox {1}, {2}"]), size, a, b, c)

    def swap(self):
        size = self.pick("q l w b")
        self.put(self.pick([
            "xchg{0} {1}, {2}", "xchg{0} {1}, {3}", "lock xadd{0} {1}, {3}", "xadd{0} {1}, {2}",
            "lock cmpxchg{0} {1}, {3}", "cmpxchg{0} {1}, {2}", "lock cmpxchg16b 32(%r15)",
            "cmpxchg8b 40(%r15)", "lock add{0} {1}, {3}"]), size, self.reg(size), self.reg(size), self.mem())

    def address(self):
        size = self.pick("q q l w")
        self.put("lea{0} {1}(%{2},%{3},{4}), {5}", size, self.r.randint(-9999, 9999),
                 self.pick(R64 + ["rsp"]), self.pick(R64), self.pick([1, 2, 4, 8]), self.reg(size))
        if self.r.random() < 0.2:
            self.put("leal 5(%eax,%ebx,2), %{0}", self.pick(R32))

    def stack(self):
        kind = self.r.random()
        if kind < 0.4:
            self.put("push %{0}", self.pick(R64 + ["rsp"]))
            self.piece()
            self.put("pop %{0}", self.pick(R64))
        elif kind < 0.55:
            self.put("push {0}", self.mem())
            self.put("pop {0}", self.pick(["16(%rsp)", "-8(%rsp)", "64(%r15)"]))
        elif kind < 0.65:
            self.put("pushfq")
            self.put("pop %{0}", self.pick(R64))
        elif kind < 0.75:
            self.put("push $0x{0:x}", self.r.choice([0x202, 0x246, 0x2c7, 0xa93]))
            self.put("popfq")
            self.put("cld")
        elif kind < 0.85:
            self.put("push ${0}", self.r.randint(-9999, 9999))
            self.put("pop %{0}", self.pick(R64))
        else:
            self.put("push %rbp\n    mov %rsp, %rbp\n    sub ${0}, %rsp", self.pick([16, 32, 64]))
            self.put("and $-16, %rsp")
            self.piece()
            self.put("leave" if self.r.random() < 0.3 else "lea 8(%r14), %r14")
            if self.lines[-1].strip() != "leave":
                self.lines[-1] = "    leave"

    def string(self):
        self.put("lea {0}(%r15), %rdi\n    lea {1}(%r15), %rsi", self.r.randint(80, 300),
                 self.r.randint(80, 300))
        down = self.r.random() < 0.2
        if down:
            self.put("std")
        size = self.pick("b w l q")
        if self.r.random() < 0.4:
            self.put("{0}{1}", self.pick("movs stos lods scas cmps"), size)
        else:
            self.put("mov ${0}, %ecx", self.r.randint(0, 9))
            self.put("{0}{1}", self.pick(["rep movs", "rep stos", "rep lods", "repe cmps",
                                          "repne scas", "repe scas"]), size)
        if down:
            self.put("cld")

    def vector(self):
        x, y = self.r.randint(0, 15), self.r.randint(0, 15)
        d = self.pick("paddb paddw paddd paddq psubb psubw psubd psubq pand por pxor pandn pcmpeqb "
                      "pcmpeqw pcmpeqd pcmpgtb pcmpgtd pminub pmaxub punpcklbw punpckhbw "
                      "punpcklwd punpckldq punpckhdq punpcklqdq punpckhqdq pmuludq pmulld pmullw xorps andps "
                      "orps andnps unpcklps unpcklpd unpckhpd movhlps movlhps pshufb movss movsd "
                      "pavgb paddusb packuswb pmaddwd movaps movdqa pabsb")
        kind = self.r.random()
        if kind < 0.45:
            self.put("{0} %xmm{1}, %xmm{2}", d, x, y)
        elif kind < 0.6:
            self.put(self.pick(["movdqu {0}, %xmm{1}", "movdqu %xmm{1}, {0}", "movups %xmm{1}, {0}",
                                "movq {0}, %xmm{1}", "movq %xmm{1}, {0}", "movd {0}, %xmm{1}",
                                "movss {0}, %xmm{1}", "movsd %xmm{1}, {0}", "movss %xmm{1}, {0}",
                                "movhps {0}, %xmm{1}", "movlps %xmm{1}, {0}", "movhps %xmm{1}, {0}",
                                "movlpd {0}, %xmm{1}", "movddup {0}, %xmm{1}",
                                "pinsrd $2, {0}, %xmm{1}", "pextrq $1, %xmm{1}, {0}",
                                "pinsrb $9, {0}, %xmm{1}", "pinsrw $5, {0}, %xmm{1}"]),
                     self.mem(), x)
        elif kind < 0.75:
            self.put(self.pick(["movq %{0}, %xmm{1}", "movq %xmm{1}, %{0}", "pinsrq $1, %{0}, %xmm{1}",
                                "pextrq $0, %xmm{1}, %{0}"]), self.pick(R64), x)
        elif kind < 0.85:
            self.put(self.pick(["movd %{0}, %xmm{1}", "movd %xmm{1}, %{0}", "pmovmskb %xmm{1}, %{0}",
                                "pextrd $3, %xmm{1}, %{0}", "movmskps %xmm{1}, %{0}",
                                "pextrw $3, %xmm{1}, %{0}", "pextrb $3, %xmm{1}, %{0}"]), self.pick(R32), x)
        else:
            self.put(self.pick(["pshufd ${0}, %xmm{1}, %xmm{2}", "shufps ${0}, %xmm{1}, %xmm{2}",
                                "shufpd ${3}, %xmm{1}, %xmm{2}", "psrldq ${3}, %xmm{1}",
                                "pslldq ${4}, %xmm{1}", "psrlq ${4}, %xmm{1}",
                                "pslld ${4}, %xmm{1}", "psrld ${3}, %xmm{1}", "psllq ${0}, %xmm{1}",
                                "psrlw ${3}, %xmm{1}", "psllw ${4}, %xmm{1}", "psraw ${4}, %xmm{1}",
                                "psrad ${3}, %xmm{1}",
                                "palignr ${3}, %xmm{1}, %xmm{2}", "pshuflw ${0}, %xmm{1}, %xmm{2}"]),
                     self.r.randint(0, 255), x, y, self.r.randint(0, 3), self.r.randint(0, 40))

    def wide_vector(self):
        if not self.avx:
            return
        x, y, z = (self.r.randint(0, 15) for _ in range(3))
        three = self.pick("vpaddb vpaddd vpaddq vpsubq vpand vpor vpxor vpandn vpcmpeqb vpcmpgtw "
                          "vpminub vpunpcklbw vpunpckhdq vpunpcklqdq vpshufb vxorps vpmuludq vpmulld "
                          "vunpcklps vpavgb vpacksswb")
        kind = self.r.random()
        if kind < 0.4:
            w = self.pick("x y")
            self.put("{0} %{4}mm{1}, %{4}mm{2}, %{4}mm{3}", three, x, y, z, w)
        elif kind < 0.6:
            self.put(self.pick(["vmovdqu {0}, %ymm{1}", "vmovdqu %ymm{1}, {0}",
                                "vmovups {0}, %xmm{1}", "vmovq {0}, %xmm{1}",
                                "vmovss {0}, %xmm{1}", "vmovsd %xmm{1}, {0}",
                                "vpbroadcastb {0}, %ymm{1}", "vpbroadcastd {0}, %ymm{1}",
                                "vbroadcastss {0}, %ymm{1}", "vbroadcasti128 {0}, %ymm{1}",
                                "vinserti128 $1, {0}, %ymm{2}, %ymm{1}",
                                "vextracti128 $1, %ymm{1}, {0}", "vmovhps {0}, %xmm{2}, %xmm{1}"]),
                     self.mem(), x, y)
        else:
            self.put(self.pick(["vzeroupper", "vpermq ${0}, %ymm{1}, %ymm{2}",
                                "vpshufd ${0}, %ymm{1}, %ymm{2}", "vpsrldq $3, %ymm{1}, %ymm{2}",
                                "vpslldq $5, %xmm{1}, %xmm{2}", "vpsllq $9, %ymm{1}, %ymm{2}",
                                "vpsrad $7, %ymm{1}, %ymm{2}", "vpsrlw $2, %ymm{1}, %ymm{2}",
                                "vmovd %eax, %xmm{1}", "vpmovmskb %ymm{1}, %ecx",
                                "vpextrq $1, %xmm{1}, %rax", "vpinsrd $1, %edx, %xmm{1}, %xmm{2}",
                                "vmovss %xmm{1}, %xmm{2}, %xmm{3}", "vmovsd %xmm{1}, %xmm{2}, %xmm{3}",
                                "vpbroadcastq %xmm{1}, %ymm{2}", "vextracti128 $0, %ymm{1}, %xmm{2}",
                                "vpmaskmovd (%r15), %ymm{1}, %ymm{2}",
                                "vpmaskmovd %ymm{1}, %ymm{2}, 32(%r15)"]),
                     self.r.randint(0, 255), x, y, z)

    def mask(self):
        """Comparisons into mask registers, and what is computed from those."""
        if not self.avx512:
            return
        k, l, m = (self.r.randint(0, 7) for _ in range(3))
        x, y, z = (self.r.randint(0, 31) for _ in range(3))
        size = self.pick("b w d q")
        vector = self.pick("x y y z")
        second = self.mem() if self.r.random() < 0.3 else "%%%smm%d" % (vector, y)
        if vector == "z" and second[0] != "%":
            second = "(%r15)"
        chosen = "{%%k%d}" % self.r.randint(1, 7) if self.r.random() < 0.3 else ""
        kind = self.r.random()
        if kind < 0.35:
            self.put(self.pick(["vpcmp{0} ${1}, {2}, %{3}mm{4}, %k{5}{6}",
                                "vpcmpu{0} ${1}, {2}, %{3}mm{4}, %k{5}{6}",
                                "vpcmpeq{0} {2}, %{3}mm{4}, %k{5}{6}",
                                "vpcmpgt{0} {2}, %{3}mm{4}, %k{5}{6}",
                                "vptestm{0} {2}, %{3}mm{4}, %k{5}{6}",
                                "vptestnm{0} {2}, %{3}mm{4}, %k{5}{6}"]),
                     size, self.r.randint(0, 7), second, vector, x, k, chosen)
        elif kind < 0.45:
            self.put(self.pick(["vpmov{0}2m %{1}mm{2}, %k{3}", "vpmovm2{0} %k{3}, %{1}mm{2}"]),
                     size, vector, x, k)
        elif kind < 0.6:
            general = self.pick(R64 if size == "q" else R32)
            self.put(self.pick(["kmov{0} %k{1}, %{2}", "kmov{0} %{2}, %k{1}", "kmov{0} %k{1}, %k{3}",
                                "kmov{0} {4}, %k{1}", "kmov{0} %k{1}, {4}"]),
                     size, k, general, l, self.mem())
        elif kind < 0.75:
            op = self.pick("kand kandn kor kxor kxnor kadd")
            self.put("{0}{1} %k{2}, %k{3}, %k{4}", op, size, k, l, self.pick([k, m]))
        elif kind < 0.85:
            self.put(self.pick(["knot{0} %k{1}, %k{2}", "kshiftl{0} ${3}, %k{1}, %k{2}",
                                "kshiftr{0} ${3}, %k{1}, %k{2}"]), size, k, l, self.r.randint(0, 70))
        elif kind < 0.9:
            self.put("{0} %k{1}, %k{2}, %k{3}", self.pick("kunpckbw kunpckwd kunpckdq"), k, l, m)
        elif kind < 0.95:
            self.put("{0}{1} %k{2}, %k{3}", self.pick("kortest ktest"), size, k, l)
            self.put("set{0} %{1}", self.pick("e ne b ae"), self.pick(R8))
        else:
            self.put(self.pick(["vpternlogd ${0}, %{1}mm{2}, %{1}mm{3}, %{1}mm{4}{5}",
                                "vpandq %{1}mm{2}, %{1}mm{3}, %{1}mm{4}{5}",
                                "vpandnd %{1}mm{2}, %{1}mm{3}, %{1}mm{4}",
                                "vporq %{1}mm{2}, %{1}mm{3}, %{1}mm{4}",
                                "vpblendmb %{1}mm{2}, %{1}mm{3}, %{1}mm{4}{5}"]),
                     self.pick([0, 255, 0x80, 0x96, 0xca, 0xfe, self.r.randint(0, 255)]), vector, x,
                     y, z, chosen)

    def floating(self):
        x, y = self.r.randint(0, 15), self.r.randint(0, 15)
        self.put(self.pick(["cvtsi2sd %rax, %xmm{0}", "addsd %xmm{0}, %xmm{1}", "mulsd %xmm{0}, %xmm{1}",
                            "cvttsd2si %xmm{0}, %rdx", "ucomisd %xmm{0}, %xmm{1}",
                            "sqrtsd %xmm{0}, %xmm{1}", "cvtdq2pd %xmm{0}, %xmm{1}",
                            "fldl (%r15)\n    fstpl 8(%r15)", "fildq (%r15)\n    fistpq 16(%r15)",
                            "fnstcw 24(%r15)", "stmxcsr 28(%r15)"]), x, y)

    def jump(self):
        after = self.label()
        jump = self.pick(["j" + c for c in CONDITIONS] + ["jmp", "jrcxz"])
        if jump == "jrcxz":
            # JRCXZ reaches only 127 bytes.
            self.put("jrcxz 1f\n    jmp 2f\n1:  jmp {0}\n2:", after)
        else:
            self.put("{0} {1}", jump, after)
        for _ in range(self.r.randint(0, 3)):
            self.piece()
        self.lines.append(after + ":")

    def loop(self):
        begin = self.label()
        self.put("movl ${0}, count(%rip)", self.r.randint(1, 8))
        self.lines.append(begin + ":")
        for _ in range(self.r.randint(1, 4)):
            self.flat()
        self.put("decl count(%rip)")
        self.put("jnz {0}", begin)

    def call(self):
        function, after = self.label(), self.label()
        self.put("jmp {0}", after)
        self.lines.append(function + ":")
        saved = self.pick("rbx rbp r12 r13 r14")
        keeps = self.r.random() < 0.6
        if keeps:
            self.put("push %{0}", saved)
        for _ in range(self.r.randint(0, 4)):
            self.piece()
        if keeps:
            self.put("pop %{0}", saved)
        self.put("ret")
        self.lines.append(after + ":")
        if self.r.random() < 0.5:
            self.put("call {0}", function)
        else:
            self.put("lea {0}(%rip), %{1}\n    call *%{1}", function, self.pick(R64))

    def wild(self):
        """Writes through a pointer that the end state does not reveal: a number from the clock
        selects an address of the data or the stack."""
        self.put("rdtsc\n    and $24, %eax")
        where = self.pick(["lea -64(%rsp,%rax), %rdx", "lea 96(%r15,%rax), %rdx"])
        self.put(where + "\n    xor %eax, %eax")
        self.put("mov{0}, (%rdx)\n    mov $0, %edx", self.pick(["q $0", "l $77", "b %sil", "q %rbx"]))

    def system(self):
        self.put("mov ${0}, %eax\n    syscall", self.pick(["39", "102", "104", "186"]))

    FLAT = ("arithmetic arithmetic arithmetic unary shift extend accumulator conditional multiply "
            "bits newer swap address vector vector wide_vector mask mask floating string wild").split()
    DEEP = "stack jump jump loop call call system".split()

    def flat(self):
        getattr(self, self.pick(self.FLAT))()

    def piece(self):
        self.depth += 1
        if self.depth < 5 and self.r.random() < 0.3:
            getattr(self, self.pick(self.DEEP))()
        else:
            self.flat()
        self.depth -= 1

    def text(self, pieces):
        self.put("lea data(%rip), %r15")
        for i, reg in enumerate(R64):
            self.put("movabs ${0}, %{1}", self.r.getrandbits(63), reg)
        for _ in range(pieces):
            self.piece()
        self.put(self.pick(["ud2", "mov $231, %eax\n    xor %edi, %edi\n    syscall"]))
        fill = ", ".join(str(self.r.getrandbits(64)) for _ in range(128))
        return (".text\n.globl _start\n_start:\n" + "\n".join(self.lines) +
                "\n.data\n.balign 64\ndata: .quad " + fill + "\ncount: .quad 0\n")


def main():
    oracle, folder, first, count = sys.argv[1:5]
    os.makedirs(folder, exist_ok=True)
    with open("/proc/cpuinfo") as cpu:
        words = cpu.read().split()
    avx = all(word in words for word in ("avx2", "bmi1", "bmi2", "movbe", "adx"))
    avx512 = all(word in words for word in ("avx512f", "avx512vl", "avx512bw", "avx512dq"))
    failures = 0
    for seed in range(int(first), int(first) + int(count)):
        program = os.path.join(folder, "random_%d" % seed)
        source, object_file = program + ".s", program + ".o"
        with open(source, "w") as out:
            out.write(Program(seed, avx, avx512).text(random.Random(seed).choice([30, 100, 300, 900])))
        subprocess.run(["as", "-o", object_file, source], check=True)
        subprocess.run(["ld", "-o", program, object_file], check=True)
        window = str(random.Random(seed).choice([50, 300, 10000]))
        # Either no values are recorded, or registers, or overwritten bytes, too.
        values = str(random.Random(-seed - 1).choice([0, 1, 2]))
        run = subprocess.run([oracle, "-w", window, "-v", values, program], capture_output=True,
                             text=True, timeout=300)
        if run.returncode != 0:
            failures += 1
            print("seed %d, window %s, values %s: %s%s" %
                  (seed, window, values, run.stdout, run.stderr), flush=True)
            continue
        if seed % 10 == 0:
            print("seed %d: %s" % (seed, run.stdout.strip()), flush=True)
        for made in (source, object_file, program):
            os.remove(made)
    print("%s programs, %d failed" % (count, failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
