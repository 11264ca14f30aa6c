"""The setting ``system_tables_readers``: who may ask SQL of the system tables besides
administrators, and about which workspaces."""

from __future__ import annotations

import json
from typing import Final

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.models.platform import Config

SETTING: Final = "system_tables_readers"
ALL: Final = "*"


def granted(username: str) -> tuple[str, ...]:
    """The workspaces whose rows somebody may read, ``*`` for all. One GetItem: what is taken away
    is gone at once."""
    item = table.get(keys.config(SETTING))
    if item is None:
        return ()
    return tuple(json.loads(Config.of(item).value).get(username, ()))
