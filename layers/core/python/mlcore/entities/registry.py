"""A registered model and its versions."""

from __future__ import annotations

from typing import NamedTuple


class RegisteredModel(NamedTuple):
    name: str
    workspace: str
    creation_timestamp: int
    last_updated_timestamp: int
    description: str
    tags: dict[str, str]
    aliases: dict[str, int]
    """Version numbers by alias."""
    latest: dict[str, int]
    """The greatest version number in each stage."""


class ModelVersion(NamedTuple):
    name: str
    version: int
    creation_timestamp: int
    last_updated_timestamp: int
    description: str | None
    user_id: str | None
    current_stage: str
    source: str
    storage_location: str
    """Location of the files, if ``source`` names another version or a logged model."""
    run_id: str | None
    run_link: str
    status: str
    status_message: str | None
    tags: dict[str, str]
    model_id: str | None = None

    @property
    def version_number(self) -> int:
        """The number of the model version. Search filters call it ``version_number``."""
        return self.version

    @property
    def source_path(self) -> str:
        """The source of the model version. Search filters call it ``source_path``."""
        return self.source
