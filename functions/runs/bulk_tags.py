"""Sets and deletes tags of many runs in one request."""

from __future__ import annotations

from functools import partial
from typing import Any

from mlcore import errors
from mlcore.db.table import table
from mlcore.http import Request
from mlcore.limits import runs as limits
from mlcore.repos.runs.core import run_writes, runs
from mlcore.repos.runs.core.runs import StoredRun
from runs import messages as m
from runs.logged_values import changed_tags


def change_tags(message: m.ChangeTagsOfRuns, request: Request) -> dict[str, Any]:
    """Sets ``tags`` and deletes the tags named in ``delete_keys`` in each of the runs. A key that a
    run does not have is no error, so a request may be repeated.

    All runs are read and checked before the first one is written. Then each is written by itself:
    if one write fails, the others may be done, and the client repeats the request. Takes two
    round trips: the runs, and the writes in parallel; one more to locate runs that this process has
    not seen.

    Raises:
        InvalidParameterValue: a tag breaks MLflow's limits or is both set and deleted, a run is
            deleted, or the request names no run or no change.
        ResourceDoesNotExist: a run does not exist in this workspace.
    """
    tags = dict(limits.check_tags(message.tags))
    delete_keys = sorted(set(message.delete_keys))
    if not message.run_ids:
        raise errors.InvalidParameterValue("Name at least one run in 'run_ids'.")
    if not tags and not delete_keys:
        raise errors.InvalidParameterValue("Name tags to set or keys to delete.")
    for key in filter(tags.__contains__, delete_keys):
        raise errors.InvalidParameterValue(f"The tag '{key}' cannot be both set and deleted.")

    def decide(run: StoredRun) -> tuple[dict[str, dict[str, str]], list[tuple[str, str]]]:
        stored = run.document.texts("tags")
        removals = [("tags", key) for key in delete_keys if key in stored]
        return {"tags": changed_tags(run, tags)}, removals

    stored_runs = runs.load_all(list(dict.fromkeys(message.run_ids)), request.workspace)
    for run in stored_runs:
        runs.check_active(run)
    table.parallel([partial(run_writes.write, run, decide) for run in stored_runs])
    return {}
