"""Filters the system calls of this process with seccomp: only those are allowed that are needed to
compute and to write the answer.

The laptop's store and the API need no such filter, because they run the project's own code. A
scorer is code of a caller, and the filter is the only boundary that every Linux offers without
privileges, also inside a container or a Lambda function. It is an allow-list: a system call of a
future kernel is refused as well. After sealing, a process cannot open a file or a socket, start a
process or a thread, signal another process, map executable memory, or write to any descriptor but
its answer.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from typing import Final

ANSWER_FD: Final = 3
"""The only open descriptor of a sealed process. It is neither standard output nor standard error,
to which packages write."""

_LOAD: Final = 0x20
_JUMP_IF_EQUAL: Final = 0x15
_JUMP_IF_AT_LEAST: Final = 0x35
_JUMP_IF_ANY_BIT: Final = 0x45
_AND: Final = 0x54
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | 1  # the call fails with EPERM
_KILL: Final = 0x80000000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT = 16, 24, 32

_PROT_EXEC: Final = 4
_FUTEX_OPERATION: Final = 0x7F  # without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
_FUTEX_OPERATIONS: Final = (0, 1, 9, 10)  # wait and wake, with and without a bit set

_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_SECCOMP_SET_MODE_FILTER: Final = 1
_SECCOMP_FILTER_FLAG_TSYNC: Final = 1

_NAMES: Final = """
    mremap munmap brk madvise rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack nanosleep
    clock_nanosleep restart_syscall sched_yield getpid gettid getuid geteuid getgid getegid
    gettimeofday time clock_gettime clock_getres getrandom exit exit_group
"""
_HARMLESS: Final = tuple(_NAMES.split())
"""System calls that are allowed with any arguments."""

_X86_64: Final = {
    "write": 1,
    "mmap": 9,
    "mprotect": 10,
    "munmap": 11,
    "brk": 12,
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "sched_yield": 24,
    "mremap": 25,
    "madvise": 28,
    "nanosleep": 35,
    "getpid": 39,
    "exit": 60,
    "gettimeofday": 96,
    "getuid": 102,
    "getgid": 104,
    "geteuid": 107,
    "getegid": 108,
    "sigaltstack": 131,
    "gettid": 186,
    "time": 201,
    "futex": 202,
    "restart_syscall": 219,
    "clock_gettime": 228,
    "clock_getres": 229,
    "clock_nanosleep": 230,
    "exit_group": 231,
    "getrandom": 318,
}
_AARCH64: Final = {
    "write": 64,
    "exit": 93,
    "exit_group": 94,
    "futex": 98,
    "nanosleep": 101,
    "clock_gettime": 113,
    "clock_getres": 114,
    "clock_nanosleep": 115,
    "sched_yield": 124,
    "restart_syscall": 128,
    "sigaltstack": 132,
    "rt_sigaction": 134,
    "rt_sigprocmask": 135,
    "rt_sigreturn": 139,
    "gettimeofday": 169,
    "getpid": 172,
    "getuid": 174,
    "geteuid": 175,
    "getgid": 176,
    "getegid": 177,
    "gettid": 178,
    "brk": 214,
    "munmap": 215,
    "mremap": 216,
    "mmap": 222,
    "mprotect": 226,
    "madvise": 233,
    "getrandom": 278,
}
_MACHINES: Final = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}
"""The kernel's number and the system calls of each architecture (``platform.machine()``)."""

_X32_CALLS: Final = 0x40000000
"""Numbers of x86_64 from here on are calls of another ABI, with other meanings."""


class NoCage(Exception):
    """Raised if this system does not offer what the cage (the process without rights for a scorer's
    code) needs; the message says what is missing."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def seal() -> None:
    """Installs the seccomp filter of system calls for the rest of this process's life, in all of
    its threads, and checks that the filter works. Child processes that were started before are not
    covered: see :mod:`mlcore.scorer_cage.child_processes`.

    Raises:
        NoCage: the system offers no seccomp filters, or the filter does not refuse what it must.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise NoCage(f"no seccomp filter for the processor {platform.machine()!r}")
    program = _filter(*machine)
    length = len(program) // 8
    set_dumpable(False)
    control(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    filter_program = _Program(length, program)
    library = ctypes.CDLL(None, use_errno=True)
    made = library.syscall(
        ctypes.c_long(_SECCOMP[platform.machine()]),
        ctypes.c_long(_SECCOMP_SET_MODE_FILTER),
        ctypes.c_long(_SECCOMP_FILTER_FLAG_TSYNC),
        ctypes.byref(filter_program),
    )
    if made < 0:
        raise NoCage(f"seccomp failed: {os.strerror(ctypes.get_errno())}")
    if made > 0:
        raise NoCage(f"thread {made} cannot be locked up")
    _check_sealed()


def set_dumpable(dumpable: bool) -> None:
    """Allows or forbids other processes of the same user to read this process's memory, descriptors
    and environment. Raises NoCage if the kernel refuses."""
    control(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0)


def control(*arguments: int) -> None:
    """Calls Linux's prctl, which changes how the kernel treats this process. Raises NoCage if that
    fails."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(*map(ctypes.c_ulong, arguments)) != 0:
        error = ctypes.get_errno()
        raise NoCage(f"prctl({arguments[0]}) failed: {os.strerror(error)}")


def _check_sealed() -> None:
    for name, attempt in (
        ("open", lambda: os.open("/", os.O_RDONLY)),
        ("read", lambda: os.read(ANSWER_FD, 1)),
        ("fork", os.fork),
    ):
        try:
            attempt()
        except PermissionError:
            continue
        except OSError as error:
            raise NoCage(f"the filter let {name} through: {error}") from error
        raise NoCage(f"the filter let {name} through")


def _filter(architecture: int, numbers: dict[str, int]) -> bytes:
    """Returns the filter as a program of the kernel's classic BPF."""
    harmless = [
        instruction
        for name in _HARMLESS
        if name in numbers
        for instruction in (
            _instruction(_JUMP_IF_EQUAL, numbers[name], 0, 1),
            _instruction(_RETURN, _ALLOW),
        )
    ]
    not_executable = [
        _instruction(_LOAD, _THIRD_ARGUMENT),
        _instruction(_JUMP_IF_ANY_BIT, _PROT_EXEC, 0, 1),
        _instruction(_RETURN, _REFUSE),
        _instruction(_RETURN, _ALLOW),
    ]
    to_the_answer = [
        _instruction(_LOAD, _FIRST_ARGUMENT),
        _instruction(_JUMP_IF_EQUAL, ANSWER_FD, 1, 0),
        _instruction(_RETURN, _REFUSE),
        _instruction(_RETURN, _ALLOW),
    ]
    waiting = [
        _instruction(_LOAD, _SECOND_ARGUMENT),
        _instruction(_AND, _FUTEX_OPERATION),
        *(
            instruction
            for operation in _FUTEX_OPERATIONS
            for instruction in (
                _instruction(_JUMP_IF_EQUAL, operation, 0, 1),
                _instruction(_RETURN, _ALLOW),
            )
        ),
        _instruction(_RETURN, _REFUSE),
    ]
    return b"".join(
        (
            _instruction(_LOAD, _ARCHITECTURE),
            _instruction(_JUMP_IF_EQUAL, architecture, 1, 0),
            _instruction(_RETURN, _KILL),
            _instruction(_LOAD, _NUMBER),
            _instruction(_JUMP_IF_AT_LEAST, _X32_CALLS, 0, 1),
            _instruction(_RETURN, _KILL),
            *harmless,
            *_for_call(numbers["write"], to_the_answer),
            *_for_call(numbers["mmap"], not_executable),
            *_for_call(numbers["mprotect"], not_executable),
            *_for_call(numbers["futex"], waiting),
            _instruction(_RETURN, _REFUSE),
        )
    )


def _for_call(number: int, checks: Iterable[bytes]) -> list[bytes]:
    """Returns instructions that run the checks if the call has this number. Every path of the
    checks must return, because they replace the loaded number."""
    body = list(checks)
    return [_instruction(_JUMP_IF_EQUAL, number, 0, len(body)), *body]


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)
