"""Sends messages to the file remover for the uploaded files of removed versions of skills. The item
of a version is removed only together with its skill, and no other version refers to its files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from indexer.lifecycle.file_removals import QUEUE
from mlcore import file_removal_queue
from mlcore.artifacts.skill_uploads import path_of_upload
from mlcore.entities.skills import MLFLOW
from mlcore.file_removal_queue import Removal
from mlcore.models.skills import SkillVersion
from mlcore.repos.files import removable_files as file_owners


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of removed versions of skills: sends a message to the file remover for
    the uploaded files of each."""
    queue = os.environ.get(QUEUE)
    removals = []
    for record in records if queue else ():
        version = SkillVersion.of(record["OldImage"])
        path = path_of_upload(version.source) if version.source_type == MLFLOW else None
        area = None if path is None else file_owners.of_skill_upload(version.workspace, path)
        if area is not None:
            before_ms = (int(float(record["ApproximateCreationDateTime"])) + 1) * 1000
            removals.append(Removal(version.workspace, before_ms, area.key, area.keep))
    if queue and removals:
        file_removal_queue.send(queue, removals)
