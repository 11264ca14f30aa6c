"""Moves of versions between stages, deletion among them: the model and its versions in one
transaction, so that the model knows the greatest version of each stage; never changes anything
else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw, Update, number, string
from mlcore.db.table import Change, Delete, Operation, TransactionFailed, back_off, table
from mlcore.ids import new_ulid, now_ms
from mlcore.repos import document
from mlcore.repos.registry import model_versions, registered_models
from mlcore.repos.registry.model_versions import ARCHIVED, DELETED, Record
from mlcore.repos.registry.registered_models import Record as ModelRecord

MOVES_TOGETHER = 40
"""Versions that one transaction moves; DynamoDB takes 100 operations."""

REDACTED = {
    "source": "REDACTED-SOURCE-PATH",
    "run_id": "REDACTED-RUN-ID",
    "run_link": "REDACTED-RUN-LINK",
}


class _Move(NamedTuple):
    item: Raw
    stage: str

    @property
    def version(self) -> int:
        return int(self.item["model_version"]["N"])

    @property
    def source(self) -> str:
        stage: str = self.item["current_stage"]["S"]
        return stage


def transition(read: Record, stage: str, *, archive_existing: bool) -> Record:
    """Moves a version to a stage, and (``archive_existing``) all others there to Archived: at once
    if they are few, else the last of them with the version. Answers the version as it is then.

    Raises:
        ResourceDoesNotExist: the version is deleted, or its model is gone.
    """
    name, number_ = read.version.name, read.version.version
    current = read
    for attempt in range(registered_models.WRITE_ATTEMPTS):
        others: list[Raw] = []
        if archive_existing:
            others = [
                item
                for item in _in_stage(current.model.home, stage)
                if int(item["model_version"]["N"]) != number_
            ]
        part = others[:MOVES_TOGETHER]
        moves = [_Move(item, ARCHIVED) for item in part]
        last = len(part) == len(others)
        if last:
            moves.append(_Move(current.document.item, stage))
        if _moved(current.model, moves) and last:
            break
        current = model_versions.get(read.model.model.workspace, name, number_)
        back_off(min(attempt, 4))
    else:
        raise registered_models.busy()
    return model_versions.get(read.model.model.workspace, name, number_)


def delete(read: Record) -> None:
    """Deletes a version: it keeps its number and its tags, and loses its aliases and the rest.

    Raises:
        ResourceDoesNotExist: the version is deleted already, or its model is gone.
    """
    current = read
    for attempt in range(registered_models.WRITE_ATTEMPTS):
        version = current.version
        model = current.model
        names = model_versions.aliases(model.model, version.version)
        for alias in names[MOVES_TOGETHER:]:
            registered_models.delete_alias(model, alias, announced=False)
        if len(names) <= MOVES_TOGETHER:
            beside: list[Operation] = [Delete(keys.model_alias(model.home, name)) for name in names]
            if version.run_id:
                place = keys.run_model_version(version.run_id, model.incarnation, version.version)
                beside.append(Delete(place))
            outside = model.document.outside.get("aliases", {})
            inline = [name for name in names if name not in outside]
            if _moved(model, [_Move(current.document.item, DELETED)], inline, beside):
                return
        current = model_versions.get(model.model.workspace, version.name, version.version)
        back_off(min(attempt, 4))
    raise registered_models.busy()


def _moved(
    model: ModelRecord,
    moves: Sequence[_Move],
    aliases: Sequence[str] = (),
    beside: Sequence[Operation] = (),
) -> bool:
    """One transaction; False if the model or a version is not as it was read."""
    now = now_ms()
    change = Update()
    document.touch(change)
    change.set("last_update_time", number(now))
    for stage, version in _latest(model, moves).items():
        if version:
            change.set(("latest", stage), string(str(version)))
        elif stage in model.model.latest:
            change.remove(("latest", stage))
    for alias in aliases:
        change.remove(("aliases", alias))
    change.require_equal("incarnation", string(model.incarnation))
    change.require_equal("version", model.document.item["version"])
    versions = [Change(_key(move.item), _change(move, now)) for move in moves]
    try:
        table.transact([Change(model.document.key, change), *versions, *beside], token=new_ulid())
    except TransactionFailed:
        return False
    return True


def _latest(model: ModelRecord, moves: Sequence[_Move]) -> dict[str, int]:
    """The greatest version of each stage that the moves touch; 0 where none is left."""
    gone = {move.version for move in moves}
    touched = {move.source for move in moves} | {move.stage for move in moves}
    stages = sorted(touched - {DELETED})
    calls: list[Callable[[], int]] = [
        partial(_greatest, model.home, stage, gone) for stage in stages
    ]
    found = dict(zip(stages, table.parallel(calls), strict=True))
    for move in moves:
        if move.stage != DELETED:
            found[move.stage] = max(found[move.stage], move.version)
    return found


def _greatest(home: str, stage: str, without: set[int]) -> int:
    for item in table.query_all(
        home,
        index="LSI3",
        prefix=keys.lsi3_model_version_prefix(stage),
        descending=True,
        attributes=["PK", "SK"],
        limit=len(without) + 1,
    ):
        version: int = keys.parse(item["PK"]["S"], item["SK"]["S"]).fields["version"]
        if version not in without:
            return version
    return 0


def _in_stage(home: str, stage: str) -> list[Raw]:
    return list(table.query_all(home, index="LSI3", prefix=keys.lsi3_model_version_prefix(stage)))


def _change(move: _Move, now: int) -> Update:
    change = Update()
    document.touch(change)
    change.set("current_stage", string(move.stage))
    change.set("last_update_time", number(now))
    if move.stage == DELETED:
        change.remove("lsi3sk")
        change.remove("description")
        change.remove("user_id")
        change.remove("status_message")
        for attribute, text in REDACTED.items():
            change.set(attribute, string(text))
    else:
        change.set("lsi3sk", string(keys.lsi3_model_version(move.stage, move.version)))
    change.require_equal("version", move.item["version"])
    return change


def _key(item: Raw) -> keys.Key:
    return keys.Key(item["PK"]["S"], item["SK"]["S"])
