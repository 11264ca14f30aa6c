"""Steps of ``doctor``: check what the indexer updates asynchronously after a write: lists across
partitions, and the index of a finished run."""

from __future__ import annotations

import time
from typing import Any

from operate.doctor.checkup_state import Checkup
from operate.doctor.steps import search


def follow(checkup: Checkup) -> str:
    """A step of ``doctor``: ends its run, waits until the lists of experiments and models contain
    those that it created, and checks that searches answer as before. Returns the result as a text.
    Raises Wrong if they do not, LeftOut if an earlier step failed."""
    api, run_id = checkup.api, checkup.fact("run")
    now = int(time.time() * 1000)
    api.post("runs/update", run_id=run_id, status="FINISHED", end_time=now)

    def listed() -> Any:
        page = api.post("experiments/search", filter=f"name = '{checkup.name}'", max_results=5)
        return page.get("experiments")

    checkup.wait("experiments/search lists the experiment", listed)
    if "model" in checkup.facts:
        text = f"name = '{checkup.fact('model')}'"
        checkup.wait(
            "registered-models/search lists the model",
            lambda: api.get("registered-models/search", filter=text).get("registered_models"),
        )
    search.check(checkup, run_id)
    return "lists name what was made, and searches of the ended run answer as before"
