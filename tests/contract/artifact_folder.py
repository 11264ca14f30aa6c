"""Files of the product in a folder of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlcore import artifacts


@contextmanager
def artifacts_in(folder: Path) -> Iterator[Path]:
    """While the block runs, artifacts, large spans and long histories are stored in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARTIFACT_FOLDER", str(folder))
        artifacts.store.cache_clear()
        yield folder
    artifacts.store.cache_clear()
