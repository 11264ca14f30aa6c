"""Writes of a document that others write at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from mlcore import settle
from mlcore.db.expression import Raw
from mlcore.db.failures import ConditionFailed, TooLarge
from mlcore.db.table import table
from mlcore.repos.document import Document
from mlcore.settle import Conflict


class Read(Protocol):
    """An entity as it was read."""

    @property
    def document(self) -> Document: ...


R = TypeVar("R", bound=Read)


def write(
    noun: str,
    read: R,
    send: Callable[[R], None],
    meanwhile: Callable[[R, Raw | None], R],
) -> R:
    """Writes a document, whoever else writes it at the same time; answers it as it was written to.

    Args:
        noun: what is written, for the caller who is told that it is busy.
        send: decides and writes; raises ConditionFailed and TooLarge as
            :func:`mlcore.repos.document_writes.write` does.
        meanwhile: the entity as it is by now, from how it was read and the item that is there
            instead (None: it is gone); raises what forbids the write.

    Raises:
        TooLarge: nobody else has filled the item.
    """
    current = read

    def attempt() -> R:
        nonlocal current
        try:
            send(current)
        except ConditionFailed as failed:
            current = meanwhile(current, failed.item)
            raise Conflict from failed
        except TooLarge as too_large:
            # Others may have filled the item that this writer took for emptier.
            seen = current
            current = meanwhile(seen, table.get(seen.document.key))
            if current.document.version == seen.document.version:
                raise
            raise Conflict from too_large
        return current

    return settle.settle(noun, attempt)
