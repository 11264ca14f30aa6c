"""Writes a document (an item with its maps of key-value data) that other processes may write at the
same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from mlcore import optimistic_retry
from mlcore.db.expression import Raw
from mlcore.db.failures import ConditionFailed, ItemTooLarge
from mlcore.db.table import table
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.document import Document


class ReadDocument(Protocol):
    """An entity as it was read, with its document (its item with maps of key-value data)."""

    @property
    def document(self) -> Document: ...


R = TypeVar("R", bound=ReadDocument)


def write(
    noun: str,
    read: R,
    send: Callable[[R], None],
    meanwhile: Callable[[R, Raw | None], R],
) -> R:
    """Writes a document and retries when another writer was first. Returns the entity on which the
    successful write was based.

    Args:
        noun: the kind of entity, for the error message if conflicts persist.
        read: the entity that was read.
        send: computes the change of an entity and writes it; raises ConditionFailed as
            :func:`mlcore.repos.document_writes.write` does, and ItemTooLarge.
        meanwhile: is called after a conflict with the entity and the item as the other writer left
            it (None: deleted); returns the current entity, or raises if it may no longer be
            written.

    Raises:
        ItemTooLarge: the item is full, not because of another writer.
        RequestLimitExceeded: every attempt conflicted with other writers.
    """
    current = read

    def attempt() -> R:
        nonlocal current
        try:
            send(current)
        except ConditionFailed as failed:
            current = meanwhile(current, failed.item)
            raise WriteConflict from failed
        except ItemTooLarge as too_large:
            # Other writers may have filled the item since it was read.
            seen = current
            current = meanwhile(seen, table.get(seen.document.key))
            if current.document.version == seen.document.version:
                raise
            raise WriteConflict from too_large
        return current

    return optimistic_retry.retry_on_conflict(noun, attempt)
