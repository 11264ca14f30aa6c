"""Becomes the DynamoDB engine: hands the runner a say over the engine's sockets, then executes it.

    python -I -S launcher.py PARENT CHANNEL PROGRAM ARGUMENT …

A program of its own, because nothing else may run in the process between the fork and here: the
runner has threads. CHANNEL is the descriptor of a Unix socket over which the listener of the
notifications goes to the process PARENT, or -1 for an engine that opens its sockets itself.
:mod:`local.engine.unix_socket` says what they are for. Imports nothing of the product, and little
else: each start waits for it.
"""

from __future__ import annotations

import array
import ctypes
import os
import signal
import socket
import struct
import sys

CANNOT_GUARD = 97
"""Exit code: the kernel does not let this process hand over its sockets."""

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_NEW_LISTENER = 8
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET = 0, 4


SYSTEM_CALLS = {"x86_64": (0xC000003E, 317, 49, 288), "aarch64": (0xC00000B7, 277, 200, 242)}
"""By kind of processor: its name in filters, then the numbers of seccomp, bind and accept4."""


class _Program(ctypes.Structure):
    """The kernel's ``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _filter(architecture: int, bind: int, accept4: int) -> bytes:
    """Asks about ``bind`` and ``accept4``, allows everything else."""
    instructions = (
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_EQUAL, 0, 4, architecture),
        (_LOAD_WORD, 0, 0, _NUMBER_OFFSET),
        (_JUMP_EQUAL, 1, 0, bind),
        (_JUMP_EQUAL, 0, 1, accept4),
        (_RETURN, 0, 0, _NOTIFY),
        (_RETURN, 0, 0, _ALLOW),
    )
    return b"".join(struct.pack("=HBBI", *one) for one in instructions)


def _guard(library: ctypes.CDLL) -> int:
    """The descriptor of the notifications.

    Raises:
        OSError: this system has none.
    """
    architecture, seccomp, bind, accept4 = SYSTEM_CALLS[os.uname().machine]
    code = _filter(architecture, bind, accept4)
    program = _Program(len(code) // 8, code)
    if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    descriptor: int = library.syscall(
        seccomp,
        _SECCOMP_SET_MODE_FILTER,
        _SECCOMP_FILTER_FLAG_NEW_LISTENER,
        ctypes.byref(program),
    )
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return descriptor


def main(parent: int, channel: int, command: list[str]) -> None:
    """Does not return."""
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux":
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)
    if channel >= 0:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=channel) as out:
            try:
                notifications = _guard(library)
            except OSError as error:
                print(error, file=sys.stderr)
                sys.exit(CANNOT_GUARD)
            rights = array.array("i", [notifications])
            out.sendmsg([b"n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    os.execv(command[0], command)  # noqa: S606 - the runner's own command


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
