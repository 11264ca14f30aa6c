"""The version of this product. A test checks that pyproject.toml has the same."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
