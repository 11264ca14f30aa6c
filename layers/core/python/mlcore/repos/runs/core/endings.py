"""Ends runs in which this server's jobs (such as evaluations) have stored their results."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.keys import lsi3_run
from mlcore.entities.metrics import Metric
from mlcore.entities.runs import RUNNING
from mlcore.models.runs import Run as RunItem
from mlcore.repos.runs.core import run_writes
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history.latest_point_text import newer_texts


def end(
    run: StoredRun,
    status: str,
    end_time: int,
    *,
    metrics: Mapping[str, Metric] = MappingProxyType({}),
    tags: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Ends a run with further tags and latest metrics. A run that has ended is not changed, even if
    it ended after it was read.

    Args:
        metrics: points by metric that become the run's latest values. They are already in the
            run's history, so the indexer may have set them already.

    Raises:
        InvalidParameterValue: the run was deleted.
    """
    if run.item.status != RUNNING:
        return
    attributes: list[tuple[ItemAttribute[Any], Any]] = [
        (RunItem.status, status),
        (RunItem.lsi3sk, lsi3_run(status, run.item.start_time, run.run_id)),
        (RunItem.end_time, end_time),
    ]

    def decide(current: StoredRun) -> tuple[dict[str, Mapping[str, str]], tuple[()]]:
        if current.item.status != RUNNING:
            raise _AlreadyEnded
        newer = newer_texts(current.document.texts("metrics"), metrics)
        return {"metrics": newer, "tags": tags}, ()

    with contextlib.suppress(_AlreadyEnded):
        run_writes.write(run, decide, attributes, exclusive=True)


class _AlreadyEnded(Exception):
    """Raised if a user or another job has ended the run meanwhile."""
