"""A model, ready to be called: whose it is, and the credentials in the clear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Model(NamedTuple):
    """Lives for one call; what is printed of it holds no credential."""

    provider: str
    name: str
    secret: Mapping[str, str]
    """Credentials by the names that the provider's configuration gives them."""
    auth_config: Mapping[str, str]
    """Not secret: where the provider is, which region, how to log in."""

    def __repr__(self) -> str:
        return f"Model({self.provider}/{self.name})"
