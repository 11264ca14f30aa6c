"""Some 1,600 operations of MLflow's own client, done with stock and with the product: what came of
each is equal but for SQL in messages and where stock failed with 500."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.engines import ROOT
from tests.servers import environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SERVER_FAILED = ("INTERNAL_ERROR: ", "TEMPORARILY_UNAVAILABLE: ", "failed with error code 5")
"""In what the client says of a 5xx: the server's code before its message, or the status. Errors of
the client itself have the code INTERNAL_ERROR, too, but not in the message."""

STOCK_FAILED = (*SERVER_FAILED, "sqlalche.me")
"""In what the client says of stock: it had a 5xx for an answer, or its message shows SQL."""

MEANT = {
    "search models 0": "a page of nothing with a token to the next one",
    "search models -1": "likewise",
    "search_prompts 0": "likewise",
    "search_logged_models -1": "likewise",
    "get_dataset": "stock answers HTML to an unknown path",
    "search_traces timestamp = 'x' False": "stock names the field twice",
}
"""Other differences, by operation, with what stock does."""


def test_every_operation(stock_url: str, product_url: str, tmp_path: Path) -> None:
    name = f"ops{uuid4().hex[:6]}"
    files = {url: tmp_path / f"{side}.json" for side, url in enumerate((stock_url, product_url))}
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.differential.operations", url, name, str(file)],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.DEVNULL,
        )
        for url, file in files.items()
    ]
    assert [process.wait(500) for process in running] == [0, 0]
    stock, ours = (json.loads(file.read_text()) for file in files.values())
    assert [what for what, _ in stock] == [what for what, _ in ours]
    assert len(ours) > 1500
    different = {
        what: f"{what}\n  stock {theirs[:600]}\n  ours  {mine[:600]}"
        for (what, theirs), (_, mine) in zip(stock, ours, strict=True)
        if theirs != mine and not any(failure in theirs for failure in STOCK_FAILED)
    }
    unmeant = [report for what, report in different.items() if what not in MEANT]
    assert not unmeant, f"{len(unmeant)} differences\n" + "\n".join(unmeant)
    assert different.keys() == MEANT.keys()
    assert not [what for what, mine in ours if any(failure in mine for failure in SERVER_FAILED)]
