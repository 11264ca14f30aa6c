"""Creates, reads, updates, deletes and restores runs, sets and deletes single tags, and records
logged models of old clients. :mod:`runs.logged_values` logs metrics, params and batches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mlcore import errors, ids, reserved_tags
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.keys import lsi3_run
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.runs import RUNNING, Run
from mlcore.http import Request
from mlcore.limits import runs as limits
from mlcore.limits.artifact_locations import join
from mlcore.limits.experiments import experiment_id
from mlcore.limits.shared_checks import list_in_tag
from mlcore.models.runs import Run as RunItem
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import cached_run_writes, creations, run_writes, runs
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.responses import runs as responses
from mlcore.run_names import generate
from runs import messages as m

LOGGED_MODELS_TAG = "mlflow.log-model.history"


def create_run(message: m.CreateRun, request: Request) -> dict[str, Any]:
    created = responses.run(new_run(message, request))
    del created["outputs"]
    return {"run": created}


def new_run(message: m.CreateRun, request: Request) -> Run:
    """Creates a run: reads the experiment, then writes the run in one transaction. Two round trips,
    or more if the tags of the experiment or run do not fit into its item."""
    if not message.experiment_id:
        raise errors.BadRequest("A run needs an experiment: 'experiment_id' is missing or empty.")
    canonical_id = experiment_id(message.experiment_id)
    experiment = experiments.get_active(canonical_id, request.workspace).experiment
    given_name, tags = limits.check_create_run(message.run_name, message.tags)
    name = given_name or generate()
    run_id = ids.new_ulid()
    run = Run(
        run_id=run_id,
        experiment_id=experiment.experiment_id,
        run_name=name,
        user_id=message.user_id,
        status=RUNNING,
        start_time=message.start_time,
        end_time=None,
        artifact_uri=join(experiment.artifact_location, f"{run_id}/artifacts"),
        lifecycle_stage=ACTIVE,
        metrics={},
        params={},
        tags={**dict(tags), reserved_tags.RUN_NAME: name},
    )
    creations.create(run, experiment, created_by=request.username())
    return run


def get_run(message: m.GetRun, request: Request) -> dict[str, Any]:
    run = runs.entity(runs.load(message.run_id or message.run_uuid, request.workspace))
    return {"run": responses.run(run, responses.encoded_data(run))}


def update_run(message: m.UpdateRun, request: Request) -> dict[str, Any]:
    run = runs.load(message.run_id or message.run_uuid, request.workspace)
    status = message.status if message.has("status") else None
    end_time = message.end_time if message.has("end_time") else None
    name = message.run_name if message.has("run_name") else None
    return {"run_info": responses.run_info(update_info(run, status, end_time, name))}


def update_info(
    run: StoredRun,
    status: str | None,
    end_time: int | None,
    name: str | None,
    texts: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Run:
    """Sets those of a run's status, end time and name that are not None; an empty name changes
    nothing. A new name also sets the tag ``mlflow.runName``. Returns the changed run with the
    fields that a search of runs returns.

    Args:
        texts: ``params`` and ``tags`` to set too; the run must have none of these keys yet.
    """
    attributes: list[tuple[ItemAttribute[Any], Any]] = []
    if status is not None:
        attributes.append((RunItem.status, status))
        start = run.item.start_time
        attributes.append((RunItem.lsi3sk, lsi3_run(status, start, run.run_id)))
    if end_time is not None:
        attributes.append((RunItem.end_time, end_time))
    name_tag = {reserved_tags.RUN_NAME: name} if name else {}
    params, tags = texts.get("params", {}), {**texts.get("tags", {}), **name_tag}
    sets = {"params": params, "tags": tags}
    written = run_writes.write(run, lambda _: (sets, ()), attributes)
    before = runs.outline(written)
    return before._replace(
        status=status or before.status,
        end_time=before.end_time if end_time is None else end_time,
        run_name=name or before.run_name,
        params={**before.params, **params},
        tags={**before.tags, **tags},
    )


def delete_run(message: m.DeleteRun, request: Request) -> dict[str, Any]:
    """Marks a run as deleted, and deletes the assessments that the run gave to traces; restoring
    the run does not restore the assessments."""
    from mlcore.repos.traces import run_deletion  # noqa: PLC0415 -- needed only here

    run_deletion.mark_deleted(runs.load(message.run_id, request.workspace), request.workspace)
    return {}


def restore_run(message: m.RestoreRun, request: Request) -> dict[str, Any]:
    run_writes.set_stage(runs.load(message.run_id, request.workspace), ACTIVE)
    return {}


def set_tag(message: m.SetTag, request: Request) -> dict[str, Any]:
    tag = limits.check_tag(message)
    run_id = message.run_id or message.run_uuid
    # An empty name changes nothing.
    tags = {tag.key: tag.value} if tag.value or tag.key != reserved_tags.RUN_NAME else {}

    def decide(_: StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        return {"tags": tags}, ()

    cached_run_writes.write_texts(run_id, request.workspace, decide)
    return {}


def delete_tag(message: m.DeleteTag, request: Request) -> dict[str, Any]:
    run = runs.load(message.run_id, request.workspace)
    runs.check_active(run)
    if message.key not in run.document.texts("tags"):
        raise errors.ResourceDoesNotExist(
            f"No tag with name: {message.key} in run with id {run.run_id}"
        )
    run_writes.write(run, lambda _: ({}, [("tags", message.key)]))
    return {}


def log_model(message: m.LogModel, request: Request) -> dict[str, Any]:
    """Appends a model to the tag of a run in which 2.x clients keep their logged models. Sending it
    again changes nothing."""
    entry = limits.logged_model(message.model_json)

    def append(run: StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        history = list_in_tag(run.document.texts("tags"), LOGGED_MODELS_TAG)
        if entry in history:
            return {}, ()
        return {"tags": {LOGGED_MODELS_TAG: json.dumps([*history, entry])}}, ()

    run_writes.write(runs.load(message.run_id, request.workspace), append, exclusive=True)
    return {}
