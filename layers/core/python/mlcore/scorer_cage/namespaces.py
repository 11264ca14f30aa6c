"""Moves this process into namespaces of its own: it then sees no other process, no network, no
shared memory and no file.

The system call filter (:mod:`mlcore.scorer_cage.syscalls`) refuses the same accesses. Namespaces
are a second protection, in case of an error in the filter or in a system call that it allows.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from typing import Final

from mlcore.scorer_cage.child_processes import end_with_parent
from mlcore.scorer_cage.syscalls import ANSWER_FD, NoCage, set_dumpable

_NEW_CGROUP, _NEW_UTS, _NEW_IPC = 0x02000000, 0x04000000, 0x08000000
_NEW_USER, _NEW_PROCESSES, _NEW_NETWORK, _NEW_MOUNTS = 0x10000000, 0x20000000, 0x40000000, 0x20000
_ALL: Final = (
    _NEW_USER | _NEW_PROCESSES | _NEW_NETWORK | _NEW_MOUNTS | _NEW_IPC | _NEW_UTS | _NEW_CGROUP
)
_PRIVATE, _RECURSIVE, _READ_ONLY, _REMOUNT = 1 << 18, 16384, 1, 32
_NO_DEVICES, _NO_SET_USER, _NO_PROGRAMS = 4, 2, 8
_DETACH: Final = 2
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_CAPSET: Final = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION: Final = 0x20080522
_PR_CAPBSET_DROP: Final = 24
_CAPABILITIES: Final = 41
_MOUNT_POINT: Final = b"/tmp"  # every system has it; the new root only covers it
NOBODY: Final = 65534

_libc = ctypes.CDLL(None, use_errno=True)


def enter() -> None:
    """Continues in a child process that is alone in new namespaces, as the user nobody, with an
    empty read-only file system and without capabilities. Returns only in that child; the calling
    process waits for it and then exits in the same way.

    The server stops a scorer by SIGTERM to the calling process, which ends the child and waits for
    it, so that the child's processor time is counted.

    Raises:
        NoCage: the system does not offer such namespaces to this user.
    """
    set_dumpable(True)  # a process that changed its user may otherwise not write its own maps
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        set_dumpable(True)
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _libc.unshare(_ALL))
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{NOBODY} {user} 1")
    _write("/proc/self/gid_map", f"{NOBODY} {group} 1")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    child = os.fork()
    if child:
        _wait_for(child)
    end_with_parent()
    _leave_files()
    _drop_capabilities()


def _wait_for(child: int) -> None:
    """Waits for the child and ends this process with the child's status: its exit code, or 128 and
    the signal's number."""
    end_with_parent()  # again, because entering the new namespace has reset it
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    # Only the child may hold the answer's end of the pipe.
    os.closerange(0, ANSWER_FD + 1)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _leave_files() -> None:
    """Makes an empty read-only file system the root of this process, and detaches the old one."""
    nothing = ctypes.c_char_p(None)
    _call("mount", _libc.mount(b"none", b"/", nothing, _PRIVATE | _RECURSIVE, nothing))
    flags = _NO_DEVICES | _NO_SET_USER | _NO_PROGRAMS
    _call("mount", _libc.mount(b"none", _MOUNT_POINT, b"tmpfs", flags, b"size=4k,mode=555"))
    os.chdir(_MOUNT_POINT)
    # The old root is stacked below the new one and then detached.
    _call("pivot_root", _libc.syscall(_number(_PIVOT_ROOT), b".", b"."))
    _call("umount2", _libc.umount2(b".", _DETACH))
    _call("mount", _libc.mount(b"none", b"/", nothing, flags | _REMOUNT | _READ_ONLY, nothing))
    os.chdir("/")


def _drop_capabilities() -> None:
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # unknown ones of old kernels fail
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _call("capset", _libc.syscall(_number(_CAPSET), header, nothing))


def _number(numbers: dict[str, int]) -> int:
    number = numbers.get(platform.machine())
    if number is None:
        raise NoCage(f"no namespaces for the processor {platform.machine()!r}")
    return number


def _call(name: str, result: int) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise NoCage(f"{name} failed: {os.strerror(error)}")


def _write(path: str, text: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise NoCage(f"{path} cannot be written: {error.strerror}") from error
