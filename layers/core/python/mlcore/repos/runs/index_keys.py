"""The keys of run items in local indexes: which follow from which attributes and texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore.db import keys
from mlcore.db.expression import Raw, string
from mlcore.entities import Run
from mlcore.repos.runs import points
from mlcore.search.fields import RUN_NAME_TAG


def of_new(run: Run, primary: str | None) -> dict[str, Any]:
    """By attribute; ``primary`` is the experiment's primary metric."""
    start = run.start_time or 0
    latest = run.metrics.get(primary) if primary else None
    ranked = (
        {} if latest is None else {"lsi5sk": keys.lsi5_run(latest.key, latest.value, run.run_id)}
    )
    return {
        **ranked,
        "lsi1sk": keys.lsi1_run(run.lifecycle_stage, start, run.run_id),
        "lsi2sk": keys.lsi2_run(start, run.run_id),
        "lsi3sk": keys.lsi3_run(run.status, start, run.run_id),
        "lsi4sk": keys.lsi4_run(run.run_name, run.run_id),
    }


def of_texts(item: Raw, sets: Mapping[str, Mapping[str, str]]) -> Raw:
    """What follows from texts that are written to a run item: its name, and its primary metric."""
    run_id = item["run_id"]["S"]
    extra: Raw = {}
    name = sets.get("tags", {}).get(RUN_NAME_TAG)
    if name is not None:
        extra["run_name"] = string(name)
        extra["lsi4sk"] = string(keys.lsi4_run(name, run_id))
    primary = item.get("primary_metric", {}).get("S")
    latest = sets.get("metrics", {}).get(primary) if primary else None
    if primary and latest is not None:
        value = points.parse_latest(primary, latest).value
        extra["lsi5sk"] = string(keys.lsi5_run(primary, value, run_id))
    return extra
