"""Queues messages that tell the file remover which files of deleted items to delete. Touches no
file itself.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import NamedTuple

from mlcore import queues

_logger = logging.getLogger("mlcore.file_removal_queue")


class Removal(NamedTuple):
    """A message to the file remover: remove the files below ``key`` in the artifact store.

    Files written after ``before_ms`` (milliseconds since the epoch) belong to a newer item and are
    kept, and so are files at or below a key of ``keep``. Who sends the message must have asked
    :mod:`mlcore.repos.files.removable_files` before whether the files may be removed.
    """

    workspace: str
    before_ms: int
    key: str
    keep: Sequence[str] = ()


def send(queue_url: str, removals: Sequence[Removal]) -> None:
    """Sends the names of files to remove to the file remover's queue. Raises the errors of
    :func:`mlcore.queues.send`.

    A removal with so many files to keep that the queue refuses its message is left out, with a
    warning: its files stay.
    """
    messages = []
    for removal in removals:
        body = json.dumps(removal._asdict())
        if len(body) <= queues.MAX_MESSAGE_BYTES:
            messages.append(queues.QueueMessage(body, removal.workspace))
        else:
            _logger.warning("the files of %s stay: too many below are kept", removal.key)
    if messages:
        queues.send(queue_url, messages)


def parse(text: str) -> Removal:
    return Removal(**json.loads(text))
