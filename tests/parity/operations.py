"""Runs the operations of a client with a stock server and with this product, and compares."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tests.engines import ROOT
from tests.parity.installation import CURRENT, numbers
from tests.servers import environment, start_old_stock, start_product, start_stock, stopped

SECONDS: Final = 900
SERVER_FAILED: Final = ("INTERNAL_ERROR: ", "TEMPORARILY_UNAVAILABLE: ", "failed with error code 5")
"""In what the client says of a 5xx: the server's code before its message, or the status. Errors of
the client itself have the code INTERNAL_ERROR, too, but not in the message."""

STOCK_FAILED: Final = (*SERVER_FAILED, "too many 500 error responses", "sqlalche.me")
"""In what the client says of stock: it had a 5xx for an answer (with other words before 3.18), or
its message shows SQL."""

MEANT: Final = {
    "search models 0": "an empty page with a page token; this product refuses the number",
    "search models -1": "likewise",
    "search_prompts 0": "likewise",
    "search_logged_models -1": "likewise",
    "get_dataset": "answers an unknown path with HTML; this product answers "
    "`ENDPOINT_NOT_FOUND` as JSON",
    "search_traces timestamp = 'x' False": "names the field twice in its error",
}
"""Differences on purpose, by operation, with what stock does."""

BEFORE_3_18: Final = {
    "search_logged_models metrics.m > 1": "finds models if any point of the metric matches, "
    "not only the latest",
    "search_logged_models status = '2'": "accepts a status that does not exist",
}
"""What older servers do differently, by operation."""


class Outcome(NamedTuple):
    operation: str
    stock: str
    ours: str
    is_older: bool = False
    """Whether the stock server is older than the version that the product follows."""

    @property
    def is_equal(self) -> bool:
        return self.stock == self.ours

    @property
    def has_stock_failed(self) -> bool:
        """Whether stock answered with 5xx, or with a message that quotes SQL."""
        return any(failure in self.stock for failure in STOCK_FAILED)

    @property
    def have_we_failed(self) -> bool:
        """Whether the product answered with 5xx."""
        return any(failure in self.ours for failure in SERVER_FAILED)

    @property
    def is_unexplained(self) -> bool:
        is_meant = self.operation in MEANT
        is_meant |= self.is_older and self.operation in BEFORE_3_18
        return self.have_we_failed or not (self.is_equal or self.has_stock_failed or is_meant)

    def __str__(self) -> str:
        return f"{self.operation}\n  stock {self.stock[:600]}\n  ours  {self.ours[:600]}"


def run(url: str, name: str, file: Path, python: str) -> list[list[str]]:
    """Returns each operation and what came of it, with a server on which nothing has the name.

    Args:
        file: where the client's process writes them.
        python: the interpreter whose MLflow is the client.
    """
    command = [python, "-m", "tests.differential.operations", url, name, str(file)]
    subprocess.run(
        command,
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        timeout=SECONDS,
        check=True,
    )
    outcomes: list[list[str]] = json.loads(file.read_text())
    return outcomes


def compared(stock: list[list[str]], ours: list[list[str]]) -> list[Outcome]:
    """Returns what came of each operation with both servers."""
    assert [what for what, _ in stock] == [what for what, _ in ours]
    return [
        Outcome(what, theirs, mine) for (what, theirs), (_, mine) in zip(stock, ours, strict=True)
    ]


def with_version(python: str, version: str) -> Iterator[Outcome]:
    """Starts a stock server of a version and the product, and yields what came of each operation
    with that version's client."""
    with TemporaryDirectory() as kept, ExitStack() as stack:
        folders = [Path(kept) / name for name in ("stock", "ours")]
        for folder in folders:
            folder.mkdir()
        stock = (
            start_stock(folders[0])
            if version == CURRENT
            else start_old_stock(folders[0], Path(python))
        )
        stack.enter_context(stopped(stock))
        product = stack.enter_context(stopped(start_product(folders[1])))
        is_older = numbers(version) < numbers(CURRENT)
        with ThreadPoolExecutor() as both:
            running = [
                both.submit(run, server.url, "ops", Path(kept) / f"{side}.json", python)
                for side, server in enumerate((stock, product))
            ]
        for outcome in compared(*(each.result() for each in running)):
            yield outcome._replace(is_older=is_older)
