"""Code with which a scorer could try to leave its cage, by name.

Each text is the body of a scorer that gets the targets as ``inputs`` (:class:`Targets`) and returns
``escaped`` if it reached something outside. All but those in :data:`NOT_OUTSIDE` do so in a process
without a cage, which the tests check first: an attack that never works would prove nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Targets(NamedTuple):
    """What an escape can reach outside of a cage."""

    secret: str
    """A word that stands in a file, in the environment, and in another process's memory."""
    file: str
    """The path of a file with the secret."""
    link: str
    """A symbolic link to it."""
    folder: str
    """A folder in which everybody may write."""
    database: str
    """An SQLite database with the secret, as another tenant's data."""
    package: str
    """A zip file with the Python module ``smuggled``."""
    port: int
    """A TCP port of this machine at which somebody listens, as the runtime API in Lambda."""
    socket: str
    """The path of a listening Unix socket."""
    victim: int
    """The id of a process of the same user."""
    parent: int
    """The id of the server's process."""
    descriptor: int
    """An inheritable descriptor of the server, open on the file with the secret."""


_SYSCALL: Final = """
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'
def call(on_x86, on_arm, *arguments):
    # An int alone has 32 bits, and the upper half of what the kernel takes is anything.
    whole = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return libc.syscall(ctypes.c_long(on_x86 if x86 else on_arm), *whole)
"""

FILES: Final = {
    "read a file": "return 'escaped' if inputs['secret'] in open(inputs['file']).read() else 'no'",
    "read a file by its descriptor": """
import os
return 'escaped' if os.read(os.open(inputs['file'], os.O_RDONLY), 10) else 'no'""",
    "read through a symbolic link": "return 'escaped' if open(inputs['link']).read() else 'no'",
    "read the users of the system": "return 'escaped' if open('/etc/passwd').read() else 'no'",
    "read the server's source": "import os\nreturn 'escaped' if open(os.__file__).read() else 'no'",
    "list a folder": "import os\nreturn 'escaped' if os.listdir(inputs['folder']) else 'no'",
    "list the root": "import os\nreturn 'escaped' if os.listdir('/') else 'no'",
    "see whether a file exists": "import os\nos.stat(inputs['file'])\nreturn 'escaped'",
    "read another tenant's data": """
import sqlite3
rows = sqlite3.connect(inputs['database']).execute('SELECT * FROM t').fetchall()
return 'escaped' if rows else 'no'""",
    "write a file": "open(inputs['folder'] + '/made', 'w').write('x')\nreturn 'escaped'",
    "change a file": "open(inputs['file'], 'a').write('x')\nreturn 'escaped'",
    "empty a file": "import os\nos.truncate(inputs['file'], 0)\nreturn 'escaped'",
    "delete a file": "import os\nos.unlink(inputs['file'])\nreturn 'escaped'",
    "rename a file": "import os\nos.rename(inputs['file'], inputs['file'] + 'x')\nreturn 'escaped'",
    "change a file's mode": "import os\nos.chmod(inputs['file'], 0o777)\nreturn 'escaped'",
    "make a folder": "import os\nos.mkdir(inputs['folder'] + '/made')\nreturn 'escaped'",
    "make a symbolic link": """
import os
os.symlink(inputs['file'], inputs['folder'] + '/made')
return 'escaped'""",
    "make a hard link": """
import os
os.link(inputs['file'], inputs['folder'] + '/made')
return 'escaped'""",
    "make a named pipe": "import os\nos.mkfifo(inputs['folder'] + '/made')\nreturn 'escaped'",
    "make a temporary file": "import tempfile\ntempfile.TemporaryFile()\nreturn 'escaped'",
    "make a file in memory": "import os\nos.memfd_create('x')\nreturn 'escaped'",
    "make a pipe": "import os\nos.pipe()\nreturn 'escaped'",
    "change the working directory": "import os\nos.chdir(inputs['folder'])\nreturn 'escaped'",
    "import a smuggled module": """
import sys
sys.path.insert(0, inputs['package'])
import importlib
smuggled = importlib.import_module('smuggled')
return 'escaped' if smuggled else 'no'""",
    "open a file by its handle": _SYSCALL
    + """
handle, mount = (ctypes.c_uint32 * 64)(128), ctypes.c_int()
made = call(303, 264, -100, inputs['file'].encode(), handle, ctypes.byref(mount), 0)
return 'escaped' if made == 0 else 'no'""",
    "read an inherited descriptor": """
import os
return 'escaped' if os.pread(inputs['descriptor'], 5, 0) else 'no'""",
    "read the request again": "import os\nos.read(0, 1)\nreturn 'escaped'",
    "write to the server's log": "import os\nos.write(2, b'x')\nreturn 'escaped'",
}

NETWORK: Final = {
    "connect to a port": """
import socket
socket.create_connection(('127.0.0.1', inputs['port']), 2)
return 'escaped'""",
    "ask the runtime interface": """
import urllib.request
try:
    address = f"http://127.0.0.1:{inputs['port']}/2018-06-01/runtime/invocation/next"
    urllib.request.urlopen(address, timeout=0.3)
except TimeoutError:
    return 'escaped'
return 'escaped'""",
    "ask the metadata address": """
import socket
try:
    socket.create_connection(('169.254.169.254', 80), 0.3)
except TimeoutError:
    return 'escaped'
return 'escaped'""",
    "send a datagram": """
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))
return 'escaped'""",
    "resolve a name": """
import socket
return 'escaped' if socket.getaddrinfo('localhost', 80) else 'no'""",
    "connect to a Unix socket": """
import socket
socket.socket(socket.AF_UNIX).connect(inputs['socket'])
return 'escaped'""",
    "listen at an abstract Unix socket": """
import socket
socket.socket(socket.AF_UNIX).bind('\\0escape-' + inputs['folder'])
return 'escaped'""",
    "make a pair of sockets": "import socket\nsocket.socketpair()\nreturn 'escaped'",
    "listen at a port": "import socket\nsocket.create_server(('127.0.0.1', 0))\nreturn 'escaped'",
    "ask the kernel for the network": """
import socket
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
return 'escaped'""",
    "send raw packets": """
import socket
socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
return 'escaped'""",
}

PROCESSES: Final = {
    "fork": "import os\nif os.fork() == 0: os._exit(0)\nreturn 'escaped'",
    "clone": _SYSCALL
    + """
import os
if call(56, 220, 17, 0, 0, 0, 0) == 0: os._exit(0)
return 'escaped' if ctypes.get_errno() == 0 else 'no'""",
    "clone by its newest call": _SYSCALL
    + """
import os
arguments = (ctypes.c_uint64 * 11)()
arguments[4] = 17
made = call(435, 435, arguments, 88)
if made == 0: os._exit(0)
return 'escaped' if made > 0 else 'no'""",
    "run a program": "import subprocess\nsubprocess.run(['/bin/true'])\nreturn 'escaped'",
    "run a shell": "import os\nreturn 'escaped' if os.system('exit 0') == 0 else 'no'",
    "become another program": """
import os, sys
os.execv('/bin/echo', ['echo', 'escaped'])""",
    "spawn a program": "import os\nos.posix_spawn('/bin/true', ['true'], {})\nreturn 'escaped'",
    "start a thread": """
import threading
thread = threading.Thread(target=int)
thread.start()
return 'escaped'""",
    "kill the server": "import os\nos.kill(inputs['parent'], 0)\nreturn 'escaped'",
    "kill the process in front": "import os\nos.kill(os.getppid(), 0)\nreturn 'escaped'",
    "signal a process": "import os\nos.kill(inputs['victim'], 0)\nreturn 'escaped'",
    "signal all processes": "import os\nos.kill(-1, 0)\nreturn 'escaped'",
    "get a handle of a process": "import os\nos.pidfd_open(inputs['victim'])\nreturn 'escaped'",
    "trace a process": _SYSCALL
    + "return 'escaped' if call(101, 117, 0x4206, inputs['victim'], 0, 0) == 0 else 'no'",
    "read the memory of a process": _SYSCALL
    + """
buffer = ctypes.create_string_buffer(8)
vector = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
call(310, 270, inputs['victim'], vector, 1, vector, 1, 0)
return 'escaped' if ctypes.get_errno() in (0, 14) else 'no'""",
    "read the memory of a process as a file": """
return 'escaped' if open(f"/proc/{inputs['victim']}/maps").read() else 'no'""",
    "read the server's environment": """
return 'escaped' if open(f"/proc/{inputs['parent']}/environ", 'rb').read() else 'no'""",
    "list the server's descriptors": """
import os
return 'escaped' if os.listdir(f"/proc/{inputs['parent']}/fd") else 'no'""",
    "list the processes": "import os\nreturn 'escaped' if os.listdir('/proc') else 'no'",
    "slow a process down": """
import os
os.setpriority(os.PRIO_PROCESS, inputs['victim'], 19)
return 'escaped'""",
    "move a process to a processor": """
import os
os.sched_setaffinity(inputs['victim'], os.sched_getaffinity(inputs['victim']))
return 'escaped'""",
    "limit a process": """
import resource
resource.prlimit(inputs['victim'], resource.RLIMIT_CORE)
return 'escaped'""",
    "leave the process group": "import os\nos.setpgid(0, 0)\nreturn 'escaped'",
}

SECRETS: Final = {
    "read the environment": """
import os
return 'escaped' if inputs['secret'] in repr(dict(os.environ)) else 'no'""",
    "read the environment in memory": """
import ctypes
texts = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), 'environ')
found, number = False, 0
while texts and texts[number]:
    found = found or inputs['secret'].encode() in texts[number]
    number += 1
return 'escaped' if found else 'no'""",
    "look for the server's credentials": """
import os
names = [name for name in os.environ if name.startswith('AWS_')]
return 'escaped' if names else 'no'""",
}

KERNEL: Final = {
    "mount": _SYSCALL
    + "return 'escaped' if libc.mount(b'x', b'/mnt', b'tmpfs', 0, None) == 0 else 'no'",
    "make a user namespace": _SYSCALL
    + "return 'escaped' if libc.unshare(0x10000000) == 0 else 'no'",
    "make a mount namespace": _SYSCALL + "return 'escaped' if libc.unshare(0x20000) == 0 else 'no'",
    "enter a namespace": _SYSCALL
    + """
import os
descriptor = os.open(f"/proc/{inputs['victim']}/ns/net", os.O_RDONLY)
return 'escaped' if libc.setns(descriptor, 0) == 0 else 'no'""",
    "change the root": "import os\nos.chroot('/')\nreturn 'escaped'",
    "change the user": "import os\nos.setuid(os.getuid())\nreturn 'escaped'",
    "change the groups": "import os\nos.setgid(os.getgid())\nreturn 'escaped'",
    "read the capabilities": _SYSCALL
    + """
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
return 'escaped' if call(125, 90, header, data) == 0 else 'no'""",
    "become readable for others": _SYSCALL
    + "return 'escaped' if libc.prctl(4, 1, 0, 0, 0) == 0 else 'no'",
    "rename the process": _SYSCALL
    + "return 'escaped' if libc.prctl(15, b'x', 0, 0, 0) == 0 else 'no'",
    "use io_uring": _SYSCALL
    + """
call(425, 425, 4, (ctypes.c_uint32 * 30)())
return 'escaped' if ctypes.get_errno() == 0 else 'no'""",
    "load a BPF program": _SYSCALL
    + """
call(321, 280, 5, (ctypes.c_uint64 * 16)(), 128)
return 'escaped' if ctypes.get_errno() in (7, 14, 22) else 'no'""",
    "watch performance": _SYSCALL
    + """
call(298, 241, 0, 0, -1, -1, 0)
return 'escaped' if ctypes.get_errno() in (0, 14, 22) else 'no'""",
    "handle page faults": _SYSCALL
    + """
call(323, 282, 0xffff)
return 'escaped' if ctypes.get_errno() in (0, 22) else 'no'""",
    "store a key in the kernel": _SYSCALL
    + """
call(248, 217, b'user', b'x', b'y', 1, -1)
return 'escaped' if ctypes.get_errno() == 0 else 'no'""",
    "share memory": _SYSCALL + "return 'escaped' if libc.shmget(0, 4096, 0o1600) >= 0 else 'no'",
    "share a semaphore": _SYSCALL + "return 'escaped' if libc.semget(0, 1, 0o1600) >= 0 else 'no'",
    "share a message queue": _SYSCALL + "return 'escaped' if libc.msgget(0, 0o1600) >= 0 else 'no'",
    "watch files": _SYSCALL + "return 'escaped' if libc.inotify_init() >= 0 else 'no'",
    "wait for events": "import select\nselect.epoll()\nreturn 'escaped'",
    "change the personality": _SYSCALL
    + "return 'escaped' if libc.personality(0xffffffff) >= 0 else 'no'",
    "map executable memory": """
import mmap
mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
return 'escaped'""",
    "make memory executable": _SYSCALL
    + """
import mmap
memory = mmap.mmap(-1, 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
return 'escaped' if libc.mprotect(ctypes.c_void_p(address), 4096, 5) == 0 else 'no'""",
    "read the kernel's log": _SYSCALL
    + "return 'escaped' if libc.klogctl(10, None, 0) >= 0 else 'no'",
    "read the host's name": "import os\nreturn 'escaped' if os.uname().nodename else 'no'",
    "raise a limit": """
import resource
resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))
return 'escaped'""",
}

ESCAPES: Final = {**FILES, **NETWORK, **PROCESSES, **SECRETS, **KERNEL}

NOT_OUTSIDE: Final = frozenset(
    (
        "ask the metadata address",  # a network may have no such address
        "become another program",  # it would replace the process that reports
        "change the root",
        "load a BPF program",
        "mount",
        "read the kernel's log",
        "send raw packets",
        "make a mount namespace",
        "enter a namespace",
        "watch performance",
        "handle page faults",
        "open a file by its handle",
        "store a key in the kernel",
        "read an inherited descriptor",
        "use io_uring",
        "make a user namespace",
        "signal all processes",
        "write to the server's log",
    )
)
"""Escapes that need rights which the user of a test may not have, or that a plain process does not
survive."""

_PACKAGES: Final = """
    ctypes importlib mmap os platform resource select socket sqlite3 subprocess sys tempfile
    threading urllib
"""
PACKAGES: Final = tuple(_PACKAGES.split())
"""Modules that escapes may import, so that the kernel refuses them and not a list of modules."""
