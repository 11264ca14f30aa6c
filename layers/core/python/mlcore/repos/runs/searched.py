"""A stored run as comparisons and orders ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from mlcore.repos.document import Document
from mlcore.repos.runs import runs
from mlcore.repos.runs.runs import StoredRun

_MAPS: Final[Mapping[str, Callable[[Document], Any]]] = MappingProxyType(
    {
        "metrics": runs.metrics,
        "params": lambda document: document.texts("params"),
        "tags": lambda document: document.texts("tags"),
        "dataset_inputs": runs.named_datasets,
    }
)


class SearchedRun:
    """Has the attributes of :class:`mlcore.entities.runs.Run` that can be searched, each made when
    it is asked for: a search looks at many more runs than it answers, and at little of each."""

    def __init__(self, stored: StoredRun) -> None:
        self._stored = stored

    def __getattr__(self, name: str) -> Any:
        read = _MAPS.get(name)
        value = getattr(self._stored.item, name) if read is None else read(self._stored.document)
        self.__dict__[name] = value
        return value
