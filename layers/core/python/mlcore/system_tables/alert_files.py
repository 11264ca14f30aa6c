"""Alerts over the system tables: an SQL query in a file, and a condition on its result.

The file holds SQL with a line such as ``-- when: MIN(success_ratio) < 0.9``. Its name without
``.sql`` is the alert's name. Alert files are stored in ``alerts/``, next to the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from mlcore.system_tables.storage import store

FOLDER: Final = "alerts"
SUFFIX: Final = ".sql"
_WHEN: Final = re.compile(r"^--\s*when:(.*)$", re.IGNORECASE | re.MULTILINE)
_NOTIFY: Final = re.compile(r"^--\s*notify:(.*)$", re.IGNORECASE | re.MULTILINE)
_NOTIFIED: Final[Mapping[str, bool]] = {"sns": True, "nobody": False}


def when(sql: str) -> str | None:
    """Returns the condition in an alert's SQL, the text after ``-- when:``; None if it has none."""
    match = _WHEN.search(sql)
    return match[1].strip() if match else None


def notifies(sql: str) -> bool | None:
    """Returns whether an alert notifies the deployment's SNS topics, according to the line
    ``-- notify:`` in the alert's file: True for ``sns`` or without the line, False for ``nobody``,
    None for another value."""
    match = _NOTIFY.search(sql)
    return _NOTIFIED.get(match[1].strip().lower()) if match else True


def stored() -> Iterator[tuple[str, str]]:
    """Yields (alert name, SQL) of each alert file, which are stored in the folder ``alerts`` beside
    the system tables, ordered by name."""
    for entry in store().list(FOLDER):
        if entry.size is not None and entry.name.endswith(SUFFIX):
            content = store().get(f"{FOLDER}/{entry.name}")
            if content is not None:
                yield entry.name.removesuffix(SUFFIX), content.decode("utf-8", "replace")
