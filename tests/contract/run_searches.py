"""Searches of runs, page by page, and what they read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlcore.entities.runs import Run
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import runs
from mlcore.search import fields, grammar, sort_keys
from mlcore.search.match import predicate
from tests.contract.conftest import Store


def looked_at(
    experiment_id: str, run_ids: list[str], text: str, ordering: list[str], view: str
) -> list[Run]:
    """The answer by brute force, from the runs one by one."""
    matches = predicate(grammar.parse_filter(text, fields.RUN), fields.RUN)
    key = sort_keys.sort_key(grammar.parse_order_by(ordering, fields.RUN), fields.RUN)
    stages = {"ACTIVE_ONLY": ("active",), "DELETED_ONLY": ("deleted",)}.get(
        view, ("active", "deleted")
    )
    experiments.get(experiment_id, "default")
    every = [runs.outline(runs.load(run_id, "default")) for run_id in run_ids]
    return sorted((run for run in every if run.lifecycle_stage in stages and matches(run)), key=key)


def pages(store: Store, search: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    token = ""
    while True:
        answer = store.api.post("runs/search", **search, **({"page_token": token} if token else {}))
        yield answer.get("runs", [])
        token = answer.get("next_page_token", "")
        if not token:
            return
