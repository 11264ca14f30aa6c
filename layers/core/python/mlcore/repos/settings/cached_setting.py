"""Reads settings of the deployment from the table; each process caches them for a minute."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.settings import Config
from mlcore.process_cache import ProcessCache

T = TypeVar("T")

SECONDS: Final = 60.0
"""How long a process may use a setting that another process has changed."""

_values: ProcessCache[str, Any] = ProcessCache("setting", seconds=SECONDS)


class Setting(Generic[T]):
    """Reads one setting by its name, and caches its value for a minute."""

    def __init__(self, name: str, parse: Callable[[Any], T]) -> None:
        """
        Args:
            parse: converts the stored JSON value (None if nothing is set) to the value to cache,
                which is never None.
        """
        self._name = name
        self._parse = parse

    @property
    def key(self) -> keys.Key:
        return keys.config(self._name)

    def remembered(self) -> T | None:
        """Returns the setting's cached value; None if :meth:`current` would read the table."""
        return _values.get(self._name)

    def current(self) -> T:
        """Returns the setting's cached value, or reads it; one GetItem per minute and process."""
        cached = self.remembered()
        return self.read() if cached is None else cached

    def read(self) -> T:
        """Returns the value of the setting in the table now; one GetItem."""
        return self.learn(table.get(self.key))

    def learn(self, item: Raw | None) -> T:
        """Caches and returns the value in the setting's item that the caller has read at
        :attr:`key`; without an item (None), the setting's default."""
        value = None if item is None else json.loads(Config.of(item).value)
        parsed = self._parse(value)
        _values.put(self._name, parsed)
        return parsed


def forget(name: str) -> None:
    """Removes a setting from this process's cache."""
    _values.pop(name)
