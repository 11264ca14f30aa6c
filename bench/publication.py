"""``make bench-publication``: measures the CPU time and memory that lander and publisher of the
system tables need for runs; or with ``--requests`` the requests of one publication to S3 and
DynamoDB.

Runs are created, logged to and ended by the product's handlers. In between the lander lands the
records of the stream, and a new process publishes them as in the local runner. Both are processes
of their own. The figures are those of the operating system at the end of a process, and include the
start of Python and reading the stream.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from itertools import islice
from typing import IO, Final, NamedTuple

from bench.environment import stand_alone
from bench.loaded_runs import Row, rows
from bench.profile import in_silence
from mlcore.system_tables import storage
from tests.contract.api import Api
from tests.contract.conftest import pointed
from tests.engines import create_table, memory_folder, running_store

RECORDS: Final = 1000
"""Records in one call of the lander."""
LANDER: Final = "--as-the-lander"
IN_STORE: Final = (sys.executable, "-m", "local.store")
"""Runs a module with the laptop's store in its process."""


class Usage(NamedTuple):
    """The CPU time and memory that a process used."""

    seconds: float
    """Processor time."""
    megabytes: float
    """The most memory at a time."""

    def and_then(self, other: Usage) -> Usage:
        return Usage(self.seconds + other.seconds, max(self.megabytes, other.megabytes))


def ended(process: subprocess.Popen[bytes]) -> Usage:
    """Waits for the end of a process and returns its usage."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{process.args!r} ended with {process.returncode}")
    return Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


class Lander:
    """The process of the lander."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [*IN_STORE, "bench.publication", LANDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def land(self) -> int:
        """Makes the lander process the stream records since the last call. Returns their number."""
        commands, answers = self._pipes()
        commands.write(b"\n")
        commands.flush()
        return int(answers.readline())

    def end(self) -> Usage:
        self._pipes()[0].close()
        return ended(self._process)

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        commands, answers = self._process.stdin, self._process.stdout
        if commands is None or answers is None:
            raise ValueError("the process has no pipes")
        return commands, answers


def serve_as_lander() -> None:
    """Runs as the lander: for each line of standard input, lands the new records of the stream."""
    from lander import app as lander  # noqa: PLC0415 -- only this process needs it
    from local.store.store import folder_of, table_path  # noqa: PLC0415
    from local.store.stream import StreamReader  # noqa: PLC0415

    table = os.environ["TABLE_NAME"]
    folder = folder_of(os.environ["AWS_ENDPOINT_URL_DYNAMODB"])
    if folder is None:
        raise SystemExit("The load is for the product's own store.")
    reader = StreamReader(table_path(folder, table), table)
    position = reader.get_shard_iterator(ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    with in_silence():
        for _ in sys.stdin:
            landed = 0
            while True:
                page = reader.get_records(ShardIterator=position, Limit=RECORDS)
                position = page["NextShardIterator"]
                if not page["Records"]:
                    break
                lander.handler({"Records": page["Records"]}, None)
                landed += len(page["Records"])
            answers.write(f"{landed}\n")
            answers.flush()
    reader.close()


def write(api: Api, experiment: str, row: Row) -> None:
    """Creates a run, logs to it and ends it."""
    run = api.post("runs/create", experiment_id=experiment, start_time=row.position)
    run_id = run["run"]["info"]["run_id"]
    api.post(
        "runs/log-batch",
        run_id=run_id,
        metrics=[
            {"key": key, "value": value, "step": 0, "timestamp": row.position}
            for key, value in row.metrics.items()
        ],
        params=[{"key": key, "value": value} for key, value in row.params.items()],
        tags=[{"key": key, "value": value} for key, value in row.tags.items()],
    )
    api.post("runs/update", run_id=run_id, status="FINISHED", end_time=row.position + 1)


def measure(runs: int, publications: int) -> tuple[int, Usage, Usage]:
    """Returns the number of stream records, and the usage of the lander and of the publisher."""
    records, published = 0, Usage(0, 0)
    with (
        running_store() as engine,
        memory_folder() as folder,
        pointed(engine.endpoint, create_table(engine.endpoint)) as api,
    ):
        for name, value in (
            (storage.FOLDER, folder / "tables"),
            ("SYSTEM_TABLES_SCRATCH", folder / "scratch"),
            ("PYTHONPATH", os.pathsep.join(map(os.path.abspath, sys.path))),
        ):
            os.environ[name] = str(value)
        experiment = api.new_experiment("load")
        lander = Lander()
        waiting = rows(runs)
        while part := list(islice(waiting, -(-runs // publications))):
            for row in part:
                write(api, experiment, row)
            records += lander.land()
            command = [*IN_STORE, "mltables.publish_command"]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            published = published.and_then(ended(process))
        return records, lander.end(), published


def main() -> int:
    if sys.argv[1:] == [LANDER]:
        serve_as_lander()
        return 0
    parser = argparse.ArgumentParser(prog="make bench-publication ARGS=…", description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000, help="(%(default)s)")
    parser.add_argument(
        "--publications", type=int, default=10, help="parts of the load (%(default)s)"
    )
    parser.add_argument(
        "--requests",
        action="store_true",
        help="count the requests of one publication instead (bench.publication_requests)",
    )
    options = parser.parse_args()
    stand_alone()
    if options.requests:
        from bench import publication_requests  # noqa: PLC0415 -- loads all functions

        with in_silence():
            stories = publication_requests.measured_stories()
        print(publication_requests.table(stories))
        return 0
    with in_silence():
        records, lander, publisher = measure(options.runs, options.publications)
    print(f"{options.runs} runs, {records} records of the stream")
    for name, usage in (("lander", lander), ("publisher", publisher)):
        print(f"{name}: {usage.seconds:.1f} s of processor time, {usage.megabytes:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
