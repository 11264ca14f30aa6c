"""The version of this product. A test holds it equal to pyproject.toml."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
