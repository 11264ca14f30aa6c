"""A worker's interpreter, as pytest-xdist starts it: ``python -I -S forked_worker.py SOCKET ...``.

Passes its standard streams to ``tests/forked_workers.py`` and stays until the fork that has them
ends. If that process has none to give, becomes an interpreter with the other arguments."""

import os
import socket
import sys


def main() -> None:
    _, address, *arguments = sys.argv
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
            socket.send_fds(connection, [b"0"], [0, 1, 2])
            is_taken = connection.recv(1)
        except ConnectionError:
            is_taken = b""
        if is_taken:
            # The controller notices a worker's end by its streams, which must be open nowhere else.
            os.closerange(0, 3)
            connection.recv(1)
            return
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main()
