"""A TCP relay that delays each request to a DynamoDB engine, as a network would.
    .venv/bin/python -m bench.delay http://127.0.0.1:8000 --ms 4

It runs in a process of its own and does not parse what it relays. Concurrent requests are delayed
concurrently, and the caller spends no CPU time on it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.engines import ROOT

READ = 1 << 18


async def serve(engine: str, seconds: float) -> None:
    """Prints the relay's own address, then relays connections to ``engine`` until the process
    ends."""
    parts = urlsplit(engine)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, upward = await asyncio.open_connection(parts.hostname, parts.port or 80)
        loop = asyncio.get_running_loop()

        async def answer() -> None:
            with contextlib.suppress(ConnectionError):
                while data := await upstream.read(READ):
                    writer.write(data)
            writer.close()

        task = asyncio.create_task(answer())
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(READ):
                # Callbacks with the same time run in order, so the parts of a request stay in
                # order.
                loop.call_later(seconds, upward.write, data)
        loop.call_later(seconds, upward.close)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def delaying(engine: str, milliseconds: float) -> Iterator[str]:
    """Context manager: yields the endpoint of a relay that runs until the block ends."""
    command = [sys.executable, "-m", "bench.delay", engine, "--ms", str(milliseconds)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as relay:
        try:
            assert relay.stdout
            yield relay.stdout.readline().strip()
        finally:
            relay.kill()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.delay", description=__doc__)
    parser.add_argument("engine", help="endpoint of the engine")
    parser.add_argument("--ms", type=float, default=4.0, help="delay of each request (%(default)s)")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options.engine, options.ms / 1000))


if __name__ == "__main__":
    main()
