"""KMS in this process: the local runner's, without its endpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.aws.kms import Kms, KmsClient
from mlcore import secrets


def seal_here(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Secrets are sealed with a key in the folder."""
    patch.setenv("SECRETS_KEY_ID", "key")
    made = KmsClient(Kms(folder / "key"))
    patch.setattr(secrets, "_client", lambda: made)
