"""Kills lander and publisher at a chosen request or commit."""

from __future__ import annotations

from typing import Any

import pytest

from mlcore.system_tables import landing, location


class Killed(BaseException):
    """The process is no more."""


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Set ``[n]`` and the n-th request to the store, or the n-th commit, is the last."""
    left: list[int] = []

    def count() -> None:
        if left:
            left[0] -= 1
            if left[0] == 0:
                left.clear()
                raise Killed

    class Dying:
        def __init__(self, store: Any) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            def call(*args: Any) -> Any:
                count()
                result = getattr(self._store, name)(*args)
                count()
                return result

            return call

    whole = location.store()
    monkeypatch.setattr(landing, "store", lambda: Dying(whole))
    change = pytest.importorskip("mltables.table_commit").TableCommit

    def dying(act: Any) -> Any:
        def call(*args: Any) -> Any:
            count()
            result = act(*args)
            count()
            return result

        return call

    for name in ("add", "commit"):
        monkeypatch.setattr(change, name, dying(getattr(change, name)))
    return left
