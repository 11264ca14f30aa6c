"""What requests of all routes need besides the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcore import artifacts
from mlcore.auth import passwords
from mlcore.webhooks.environment import webhook_settings
from tests.contract.sealing import seal_here


def prepare(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Files and the key of secrets are in the folder; passwords are hashed fast."""
    patch.setenv("ARTIFACT_FOLDER", str(folder))
    patch.setattr(passwords, "_N", 2)
    seal_here(patch, folder)
    artifacts.store.cache_clear()
    webhook_settings.cache_clear()
