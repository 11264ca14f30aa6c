"""Lists, restores and permanently removes deleted runs and logged models of an experiment, or a
deleted experiment itself. Callers need the permission to delete the experiment."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from mlcore import errors, paging
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE, DELETED
from mlcore.http import Request
from mlcore.limits import experiments as limits
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.experiments import experiments, stages
from mlcore.repos.removal import permanent_deletion, trash
from mlcore.repos.removal.permanent_deletion import NoLongerDeleted
from mlcore.repos.removal.remains import OutOfTime
from mlcore.repos.removal.trash import Trashed
from workspaces import messages as m

DEFAULT_PAGE: Final = 100
MOST_KEY_BYTES: Final = 1024
"""DynamoDB's limit for the length of a sort key, in bytes."""
WORK_SECONDS: Final = 20.0
"""A removal stops after this time and returns ``"finished": false``; the client repeats the
request."""


def list_trash(message: m.ListTrash, request: Request) -> dict[str, Any]:
    """Returns a page of the deleted runs and logged models of an experiment. A deleted experiment
    is the only entry: it is restored or removed as a whole."""
    experiment = _experiment(message.experiment_id, request)
    query = [request.workspace, experiment.experiment_id]
    after = _position(message.page_token, query)
    if experiment.lifecycle_stage == DELETED:
        return {"items": [_shown(_itself(experiment))]}
    limit = message.max_results or DEFAULT_PAGE
    page = list(islice(trash.parts(experiment, after, limit + 1), limit + 1))
    answer: dict[str, Any] = {"items": [_shown(entry) for entry in page[:limit]]}
    if len(page) > limit:
        last = page[limit - 1]
        answer["next_page_token"] = paging.token([last.kind, last.position], query)
    return answer


def restore_trash(message: m.RestoreTrash, request: Request) -> dict[str, Any]:
    """Restores the named runs and logged models; without ids, the experiment with everything in it.
    Returns those that were deleted before. Active ones stay unchanged.

    Raises:
        ResourceDoesNotExist: one of them does not belong to the experiment; nothing was restored.
        InvalidState: they are in a deleted experiment.
    """
    if not message.run_ids and not message.model_ids:
        return _answer(retry_on_conflict("experiment", lambda: _restore_itself(message, request)))
    experiment = _experiment(message.experiment_id, request)
    _check_active(experiment)
    in_trash = trash.named(experiment, *_ids(message))
    present = {(entry.kind, entry.item_id) for entry in (*in_trash.deleted, *in_trash.active)}
    for kind, ids in zip(trash.KINDS, _ids(message), strict=True):
        for each in ids:
            if (kind, each) not in present:
                raise errors.ResourceDoesNotExist(
                    f"Experiment {experiment.experiment_id} contains no {kind} with id={each}"
                )
    trash.restore(in_trash.deleted, request.workspace)
    return _answer(in_trash.deleted)


def purge_trash(message: m.PurgeTrash, request: Request) -> dict[str, Any]:
    """Permanently removes deleted runs and logged models of an experiment with their files, at most
    ``MOST_TRASHED`` in a request, and returns them. Ids that the experiment does not contain are
    ignored, so that a repeated request continues.

    With ``dry_run`` nothing is removed, and what would be removed is returned. ``finished`` is
    false if something remains; the client then repeats the request. ``files_kept`` has the ids of
    runs and models whose files are kept because another entity may refer to these files.

    Raises:
        InvalidState: a named run or model is not deleted, or the experiment is deleted and the
            request names runs or models; nothing was removed.
    """
    experiment = _experiment(message.experiment_id, request)
    before = message.deleted_before if message.has("deleted_before") else None
    if experiment.lifecycle_stage == DELETED:
        return _purge_itself(message, experiment, before)
    if message.run_ids or message.model_ids:
        in_trash = trash.named(experiment, *_ids(message))
        for entry in in_trash.active:
            raise errors.InvalidState(
                f"The {entry.kind} {entry.item_id} is not deleted. Delete it first."
            )
        due: Iterable[Trashed] = in_trash.deleted
    else:
        due = trash.parts(experiment)
    entries = list(
        islice((trashed for trashed in due if _is_due(trashed, before)), m.MOST_TRASHED + 1)
    )
    finished = len(entries) <= m.MOST_TRASHED
    entries = entries[: m.MOST_TRASHED]
    if message.dry_run:
        return _answer(entries, dry_run=True, finished=finished)
    return _purged(entries, experiment, finished=finished)


def _purged(entries: list[Trashed], experiment: Experiment, *, finished: bool) -> dict[str, Any]:
    deadline = time.monotonic() + WORK_SECONDS
    removed: list[Trashed] = []
    kept: list[str] = []
    for entry in entries:
        if time.monotonic() > deadline:
            finished = False
            break
        try:
            if not trash.remove(entry, experiment):
                kept.append(entry.item_id)
        except NoLongerDeleted:
            continue  # another request has restored it meanwhile
        removed.append(entry)
    return _answer(removed, kept, dry_run=False, finished=finished)


def _purge_itself(
    message: m.PurgeTrash, experiment: Experiment, before: int | None
) -> dict[str, Any]:
    if message.run_ids or message.model_ids:
        raise errors.InvalidState(
            f"The experiment {experiment.experiment_id} is deleted: remove or restore all of it."
        )
    itself = _itself(experiment)
    if not _is_due(itself, before):
        return _answer([], dry_run=message.dry_run, finished=True)
    if message.dry_run:
        return _answer([itself], dry_run=True, finished=True)
    try:
        went = permanent_deletion.experiment(
            experiment.experiment_id, time.monotonic() + WORK_SECONDS, only_deleted=True
        )
    except OutOfTime:
        return _answer([], dry_run=False, finished=False)
    except NoLongerDeleted:  # another request has restored it meanwhile
        return _answer([], dry_run=False, finished=True)
    kept = [] if went else [experiment.experiment_id]
    return _answer([itself], kept, dry_run=False, finished=True)


def _restore_itself(message: m.RestoreTrash, request: Request) -> list[Trashed]:
    experiment = _experiment(message.experiment_id, request)
    if experiment.lifecycle_stage == ACTIVE:
        return []
    stages.set_stage(experiment, ACTIVE)
    return [_itself(experiment)]


def _experiment(experiment_id: str, request: Request) -> Experiment:
    return experiments.get(limits.experiment_id(experiment_id), request.workspace).experiment


def _check_active(experiment: Experiment) -> None:
    if experiment.lifecycle_stage != ACTIVE:
        raise errors.InvalidState(
            f"The experiment {experiment.experiment_id} is deleted. Restore it first."
        )


def _ids(message: m.RestoreTrash | m.PurgeTrash) -> tuple[list[str], list[str]]:
    """Returns the ids of runs and of logged models, each once."""
    return list(dict.fromkeys(message.run_ids)), list(dict.fromkeys(message.model_ids))


def _is_due(entry: Trashed, before: int | None) -> bool:
    return before is None or entry.deleted_time is None or entry.deleted_time < before


def _itself(experiment: Experiment) -> Trashed:
    return Trashed(
        trash.EXPERIMENT, experiment.experiment_id, experiment.name, experiment.last_update_time
    )


def _position(page_token: str, query: list[str]) -> tuple[str, str] | None:
    position = paging.position_of(page_token, query)
    if position is None:
        return None
    match position:
        case [str(kind), str(key)] if kind in trash.KINDS and len(key.encode()) <= MOST_KEY_BYTES:
            return kind, key
    raise errors.InvalidParameterValue("Invalid page token")


def _answer(entries: list[Trashed], files_kept: Iterable[str] = (), **more: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"items": [_shown(entry) for entry in entries], **more}
    if more.get("dry_run") is False:
        answer["files_kept"] = list(files_kept)
    return answer


def _shown(entry: Trashed) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": entry.kind, "id": entry.item_id, "name": entry.name}
    if entry.deleted_time is not None:
        shown["deleted_time"] = entry.deleted_time
    return shown
