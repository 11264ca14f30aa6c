"""A stored run with the attributes that conditions and orders of a search use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from mlcore.entities.metrics import Metric
from mlcore.repos.document import Document
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import latest_point_text


class _Texts:
    """The keys and values of a run's map, read one by one from the item or from child items."""

    __slots__ = ("_inline", "_outside")

    def __init__(self, attribute: str, document: Document) -> None:
        self._inline = document.maps[attribute].field.reader(document.item)
        self._outside = document.outside.get(attribute, {})

    def get(self, key: str) -> str | None:
        text = self._inline(key)
        return self._outside.get(key) if text is None else text

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None


class _Metrics:
    """The latest metric values of a run by metric, each parsed on access."""

    __slots__ = ("_texts",)

    def __init__(self, document: Document) -> None:
        self._texts = _Texts("metrics", document)

    def get(self, key: str) -> Metric | None:
        text = self._texts.get(key)
        return None if text is None else latest_point_text.parse_latest(key, text)


_MAPS: Final[Mapping[str, Callable[[Document], Any]]] = MappingProxyType(
    {
        "metrics": _Metrics,
        "params": lambda document: _Texts("params", document),
        "tags": lambda document: _Texts("tags", document),
        "dataset_inputs": runs.named_datasets,
    }
)


class SearchedRun:
    """Has the searchable attributes of :class:`mlcore.entities.runs.Run`, each computed on access:
    a search tests many more runs than it returns, and few attributes of each. Metrics, params and
    tags can be read one key at a time."""

    def __init__(self, stored: StoredRun) -> None:
        self._stored = stored

    def __getattr__(self, name: str) -> Any:
        read = _MAPS.get(name)
        value = getattr(self._stored.item, name) if read is None else read(self._stored.document)
        self.__dict__[name] = value
        return value
