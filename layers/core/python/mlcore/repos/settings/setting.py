"""A setting as processes remember it: for a minute, however often they need it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.memory import Memory
from mlcore.models.platform import Config

T = TypeVar("T")

SECONDS: Final = 60.0
"""For so long a process goes on with a setting that was changed by another one."""

_values: Memory[str, Any] = Memory("setting", seconds=SECONDS)


class Setting(Generic[T]):
    """One setting, by its name."""

    def __init__(self, name: str, parse: Callable[[Any], T]) -> None:
        """
        Args:
            parse: from the JSON value, None where nothing is set, to what is remembered, which is
                never None.
        """
        self._name = name
        self._parse = parse

    @property
    def key(self) -> keys.Key:
        return keys.config(self._name)

    def remembered(self) -> T | None:
        """What :meth:`current` answers without a request; None if it needs one."""
        return _values.get(self._name)

    def current(self) -> T:
        """One GetItem in a while."""
        found = self.remembered()
        return self.read() if found is None else found

    def read(self) -> T:
        """As it is now; one GetItem."""
        return self.learn(table.get(self.key))

    def learn(self, item: Raw | None) -> T:
        """Remembers what was read at :attr:`key`."""
        value = None if item is None else json.loads(Config.of(item).value)
        found = self._parse(value)
        _values.put(self._name, found)
        return found


def forget(name: str) -> None:
    """Reads the setting anew at the next need."""
    _values.pop(name)
