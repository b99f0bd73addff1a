#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the locked instructions that ftrace's callbacks of the kernel module can come to.

	locked.py FILE.ko|FILE.o ROOT...

FILE is disassembled (OBJDUMP names the program), and all code is gone through that can be reached
from the functions ROOT, whatever the conditions: a call of a driver runs a part of it. Prints
"NUMBER locked of NUMBER instructions in FUNCTION,..." and the locked ones on stderr. A call out of
the file, whose code can't be seen here, is an error, but for the few that are known.
"""
import os
import re
import subprocess
import sys

# The return itself; and what preempt_enable() calls when the scheduler asked to run meanwhile.
KNOWN = {"__x86_return_thunk", "__fentry__", "_mcount", "__SCT__preempt_schedule_notrace",
         "preempt_schedule_notrace", "preempt_schedule_notrace_thunk"}

# x86: the prefix, and xchg with memory, which has it without saying so. arm64: load- and
# store-exclusive, and the atomic instructions of LSE; load-acquire and store-release are none.
LOCKED = re.compile(
    r"^(?:lock\b|xacquire|xrelease)|^xchg\w*\s.*\(|"
    r"^(?:ldx[rp]|ldax[rp]|stx[rp]|stlx[rp]|cas|swp|(?:ld|st)(?:add|clr|set|eor|[su]max|[su]min))"
    r"(?:a|l|al)?[bhp]?\b")
BRANCH = re.compile(r"^(?:notrack\s+|bnd\s+)*(?:call|jmp|j[a-z]+|b|bl|b\.[a-z]+|cbn?z|tbn?z)q?\b")
INDIRECT = re.compile(r"^(?:notrack\s+)?(?:call|jmp)q?\s+\*|^bl?r\b")


def disassemble(path):
    """Returns {function: [(instruction, relocated symbol or None)]}."""
    text = subprocess.run([os.environ.get("OBJDUMP", "objdump"), "-dr", "--no-show-raw-insn", path],
                          check=True, capture_output=True, text=True).stdout
    functions, current = {}, None
    for line in text.splitlines():
        if m := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            current = functions.setdefault(m[1], [])
        elif m := re.match(r"^\s*[0-9a-f]+: R_\w+\s+(\S+?)(?:[+-]0x[0-9a-f]+)?$", line):
            current[-1] = (current[-1][0], m[1])
        elif m := re.match(r"^\s*[0-9a-f]+:\s+(.*?)\s*$", line):
            current.append((m[1], None))
    return functions


def targets(function, instruction, symbol):
    """The functions that an instruction may go on in, other than its own."""
    if INDIRECT.match(instruction):
        raise ValueError(f"{function} calls through a pointer: {instruction}")
    if not BRANCH.match(instruction):
        return
    if symbol:
        yield symbol
    elif (m := re.search(r"<([^>+]+)(?:\+0x[0-9a-f]+)?>", instruction)) and m[1] != function:
        yield m[1]


def main():
    path, roots = sys.argv[1], sys.argv[2:]
    functions = disassemble(path)
    todo, seen, instructions, locked = list(roots), [], 0, 0
    while todo:
        name = todo.pop()
        if name in seen or name in KNOWN:
            continue
        if name not in functions:
            sys.exit(f"locked.py: {path}: no code of {name} in it")
        seen.append(name)
        for instruction, symbol in functions[name]:
            instructions += 1
            if LOCKED.match(instruction):
                locked += 1
                print(f"{name}: {instruction}", file=sys.stderr)
            try:
                todo.extend(targets(name, instruction, symbol))
            except ValueError as e:
                sys.exit(f"locked.py: {path}: {e}")
    print(f"{locked} locked of {instructions} instructions in {','.join(sorted(seen))}")


if __name__ == "__main__":
    main()
