"""Erases a user from the items of the table: deletes what belongs to the user, and replaces the
name in other items, such as the creator of a run, by a pseudonym.

Each step can be repeated: after a killed command, the next one continues with the remaining items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.attribute_types import text_of
from mlcore.db.client import client
from mlcore.db.expression import ConditionExpression, Raw, number
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.scim import parse_scim_id
from mlcore.environment import settings
from mlcore.ids import now_ms
from mlcore.models import search_index
from mlcore.models.base import ChildItem, Item, MetaItem
from mlcore.models.by_type import MODELS
from mlcore.models.evaluation import ReviewQueue as QueueItem
from mlcore.models.runs import Run as RunItem
from mlcore.models.scim import ScimMember
from mlcore.models.users import User as UserItem
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.document import Document
from mlcore.repos.evaluation import review_queues
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import run_writes, runs
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.traces import traces
from mlcore.repos.users import sessions
from operate.erasure import person_fields

_OF_USER: Final = frozenset(
    pattern.name
    for pattern in (
        *(keys.USER_NAME, keys.GRANTEE, keys.ROLE_USER, keys.API_KEY, keys.SIGN_IN, keys.SESSION),
        *(keys.USER_GRANT, keys.EXPERIMENT_PERMISSION, keys.MODEL_PERMISSION),
    )
)
"""Types of items that belong to the user whom ``username`` names."""

_OF_SCIM_ID: Final = frozenset((keys.SCIM_NAME.name, keys.SCIM_VALUE.name, keys.SCIM_MEMBER.name))
"""Types of items that belong to the user whose name is in ``scim_id``."""

_DERIVED: Final = frozenset(
    kind for kind, model in MODELS.items() if model.__module__ == search_index.__name__
)
"""Types of items that the indexer makes from others."""


class ItemOfUser(NamedTuple):
    """An item of the table that belongs to a user, or in which the user's name occurs."""

    kind: str
    """``delete`` (it belongs to the user), ``replace`` (it names the user), or ``mention`` (a text
    contains the name as a word, which may mean something else)."""
    item: Raw

    def __str__(self) -> str:
        key = key_of_item(self.item)
        return f"{self.kind:8}{_type(self.item)}: {key.pk} {key.sk}"


def find(name: str) -> Iterator[ItemOfUser]:
    """Yields the items of the whole DynamoDB table, except derived ones, that belong to a user,
    name the user in a field for users, or contain the user name as a word in another text. In AWS
    this reads the whole table once, consistently, which costs a read unit for each 4 KB."""
    own = {keys.user(name).pk, keys.session(name, "").pk, keys.caller_usage(f"user:{name}", 0).pk}
    queue = keys.REVIEW_QUEUE.name
    readers = keys.config(system_tables_readers.SETTING)
    for item in _scan():
        kind, key = _type(item), key_of_item(item)
        is_own = kind in _OF_USER and text_of(item, UserItem.username.attr_name) == name
        if kind in _OF_SCIM_ID:
            parsed = parse_scim_id(text_of(item, ScimMember.scim_id.attr_name) or "")
            is_own = parsed is not None and parsed[1] == name
        if kind in _DERIVED or key == readers:
            continue
        if key.pk in own or is_own:
            yield ItemOfUser("delete", item)
        elif person_fields.rewritten(item, name, "") != item or (
            kind == queue and QueueItem.of(item).name.lower() == name.lower()
        ):
            yield ItemOfUser("replace", item)
        elif person_fields.mentions(item, name):
            yield ItemOfUser("mention", item)


def _type(item: Raw) -> str:
    return text_of(item, Item.type.attr_name) or ""


def close_logins(name: str) -> int:
    """Ends the user's sessions and access to the system tables, and deletes the user, so that no
    password, API key or session works any more. Returns the number of deleted items. The remaining
    grants contain the id of the deleted user, so a new user of the same name does not get them."""
    system_tables_readers.revoke(name)
    user = table.get(keys.user(name))
    table.delete(keys.user(name))
    return sessions.end_all(name) + (user is not None)


def erase(reference: ItemOfUser, name: str, pseudonym: str) -> None:
    """Deletes an item that :func:`find` returned, or replaces the user's name in it by the
    pseudonym; the indexer then updates the search index. Raises WriteConflict if other writers
    change the item in each attempt."""
    if reference.kind == "delete":
        table.delete(key_of_item(reference.item))
        return
    item = _parent_of(reference.item) or reference.item
    rewriting = {
        keys.RUN.name: _rewrite_run,
        keys.TRACE.name: _rewrite_trace,
        keys.REVIEW_QUEUE.name: _rewrite_queue,
    }.get(_type(item))
    experiment = None if rewriting is None else _experiment_of(item)
    if rewriting is None or experiment is None:
        _rewrite(key_of_item(item), name, pseudonym)
    else:
        rewriting(item, experiment, name, pseudonym)


def _parent_of(item: Raw) -> Raw | None:
    """Returns the run or trace of a tag, metadata or assessment that is an item of its own; None
    for any other item."""
    model = MODELS.get(_type(item), Item)
    fields = model.pattern.parse(*key_of_item(item)) if issubclass(model, ChildItem) else None
    if fields and "run_id" in fields:
        return table.get(keys.run(fields["experiment_id"], fields["run_id"]))
    if fields and "trace_id" in fields:
        return table.get(keys.trace(fields["experiment_id"], fields["trace_id"]))
    return None


def _scan() -> Iterator[Raw]:
    parameters: Raw = {"TableName": settings().table_name, "ConsistentRead": True}
    while True:
        page = client().call("Scan", parameters)
        yield from page["Items"]
        if not page.get("LastEvaluatedKey"):
            return
        parameters["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _experiment_of(item: Raw) -> Experiment | None:
    experiment_id = text_of(item, RunItem.experiment_id.attr_name)
    stored = table.get(keys.experiment(experiment_id or ""))
    return None if stored is None else experiments.of_item(stored).experiment


def _map_changes(document: Document, name: str, pseudonym: str) -> dict[str, dict[str, str]]:
    return {
        attribute: person_fields.entry_changes(document.texts(attribute), name, pseudonym)
        for attribute in person_fields.MAPS
        if attribute in document.maps
    }


def _rewrite_run(item: Raw, experiment: Experiment, name: str, pseudonym: str) -> None:
    changed = person_fields.attribute_changes(item, name, pseudonym)
    attributes = [
        (field, changed[field.attr_name]["S"])
        for field in (RunItem.user_id, RunItem.created_by)
        if field.attr_name in changed
    ]
    run_writes.write(
        runs.of_item(item, experiment),
        lambda run: (_map_changes(run.document, name, pseudonym), ()),
        attributes,
        exclusive=True,
        any_stage=True,
    )


def _rewrite_trace(item: Raw, experiment: Experiment, name: str, pseudonym: str) -> None:
    traces.write(
        traces.of_item(item, experiment),
        lambda trace: traces.TraceChange(
            trace.info, _map_changes(trace.document, name, pseudonym), ()
        ),
    )


def _rewrite_queue(item: Raw, experiment: Experiment, name: str, pseudonym: str) -> None:
    """Replaces the user's name in a review queue. The name of a user's own queue is the user's
    name, so the item that locks the queue's name is replaced, too."""
    queue_id = QueueItem.of(item).entity_id

    def attempt() -> None:
        for queue in review_queues.of_experiment(experiment):
            if queue.queue_id == queue_id:
                changed = queue._replace(
                    name=pseudonym if queue.name.lower() == name.lower() else queue.name,
                    users=tuple(pseudonym if user == name else user for user in queue.users),
                    created_by=pseudonym if queue.created_by == name else queue.created_by,
                )
                if changed != queue:
                    review_queues.replace(queue, changed)

    retry_on_conflict("review queue", attempt)


def _rewrite(key: Key, name: str, pseudonym: str) -> None:
    def attempt() -> None:
        item = table.get(key)
        changed = None if item is None else person_fields.rewritten(item, name, pseudonym)
        if item is None or changed is None or changed == item:
            return
        unchanged = ConditionExpression()
        version, updated_at = MetaItem.version.attr_name, Item.updated_at.attr_name
        if version in item:
            unchanged.require_equal(MetaItem.version, MetaItem.of(item).version)
            changed[version] = number(MetaItem.of(item).version + 1)
        elif ChildItem.text.attr_name in item:
            unchanged.require_equal(ChildItem.text, ChildItem.of(item).text)
        else:
            unchanged.require_equal(Item.updated_at, Item.of(item).updated_at)
        changed[updated_at] = number(now_ms())
        try:
            table.put(changed, unchanged)
        except ConditionFailed as failed:
            raise WriteConflict from failed

    retry_on_conflict("item", attempt)
