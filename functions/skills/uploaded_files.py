"""Stores the files that are uploaded for a version of a skill."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Final

from mlcore import file_removal_queue, ids
from mlcore.artifacts import join, store
from mlcore.artifacts.paths import MAX_KEY_BYTES, key_in_workspace
from mlcore.artifacts.skill_uploads import upload_path
from mlcore.db.table import table
from mlcore.entities.skills import SkillIdentity
from mlcore.errors import InvalidParameterValue
from mlcore.file_removal_queue import Removal
from mlcore.observability import logger

QUEUE: Final = "FILE_REMOVAL_QUEUE_URL"
"""Environment: the URL of the queue; without it, files of refused versions stay."""


def new_path(identity: SkillIdentity) -> str:
    """Returns a new path for the uploaded files of one version of a skill. No other upload has the
    same path."""
    return upload_path(identity, secrets.token_hex(16))


def write(workspace: str, path: str, files: Mapping[str, bytes]) -> None:
    """Stores the uploaded files of a skill's version below a path of :func:`new_path`.

    Raises:
        InvalidParameterValue: a key would be longer than S3 allows; nothing was written.
    """
    root = key_in_workspace(path, workspace)
    for name in files:
        if len(join(root, name).encode()) > MAX_KEY_BYTES:
            most = MAX_KEY_BYTES - len(root) - 1
            raise InvalidParameterValue(
                f"Path '{name}' is longer than {most} bytes, which a file of this skill may have."
            )
    table.parallel([partial(store().put, join(root, name), files[name]) for name in files])


def remove(workspace: str, path: str) -> None:
    """Asks the file remover to delete all uploaded files of a skill's version, which are below
    ``path``. A failure is only logged: the files stay, but nothing refers to them."""
    queue = os.environ.get(QUEUE)
    if not queue:
        return
    removal = Removal(workspace, ids.now_ms() + 1000, key_in_workspace(path, workspace))
    try:
        file_removal_queue.send(queue, [removal])
    except Exception:
        logger.exception("the files of a refused version stay", extra={"path": path})
