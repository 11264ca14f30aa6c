"""Files of items that are gone: what is to be removed, and the queue that it waits in; touches no
file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from mlcore import queues


class Removal(NamedTuple):
    """Files below a key of the store (or, of earlier versions, below a location, or below a path of
    what only the product reads and writes); what was written after ``before_ms`` belongs to
    something newer and stays, and so does what is at or below ``keep``.

    Whoever sends it has asked :mod:`mlcore.repos.files.owners`."""

    workspace: str
    before_ms: int
    location: str = ""
    internal: str = ""
    key: str = ""
    keep: Sequence[str] = ()


def send(queue_url: str, removals: Sequence[Removal]) -> None:
    """Raises TemporarilyUnavailable: some may not have been sent."""
    queues.send(
        queue_url,
        [queues.Message(json.dumps(one._asdict()), one.workspace) for one in removals],
    )


def parse(text: str) -> Removal:
    return Removal(**json.loads(text))
