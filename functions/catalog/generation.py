"""A generation of the catalog as this process holds it: all entries, in the order of their names.

A generation never changes, so whoever has it need only ask whether it is still the one that is
read: one consistent GetItem. To read it are two requests, of which the second fetches all shards
side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, TypeVar

from mlcore.catalog.entry import MODEL, SERVER, Entry, Forms, of_stored, source_key
from mlcore.errors import TemporarilyUnavailable
from mlcore.memory import Latest
from mlcore.repos import catalog
from mlcore.repos.catalog import Current

T = TypeVar("T")

_ATTEMPTS: Final = 5
_MOST_ANSWERS: Final = 20
"""That a generation remembers: each may name all entries."""


class Generation:
    """The entries of a generation, and what its loader says of the sources."""

    def __init__(self, generation: str, entries: Sequence[Entry]) -> None:
        self.id = generation
        self.state: Mapping[str, Any] = {}
        self.models = tuple(entry for entry in entries if entry.kind == MODEL)
        self.servers = tuple(entry for entry in entries if entry.kind == SERVER)
        self._by_name = {(entry.source, entry.name): entry for entry in self.models}
        self._by_id = {entry.id: entry for entry in self.servers}
        self._answers: dict[tuple[Hashable, ...], Any] = {}

    def stating(self, state: Mapping[str, Any]) -> Generation:
        """The same entries, with what is said of them now."""
        if state == self.state:
            return self
        other = Generation.__new__(Generation)
        other.__dict__.update(self.__dict__)
        other.state = state
        return other

    def remembered(self, question: tuple[Hashable, ...], answer: Callable[[], T]) -> T:
        """What the entries answer to a question, which never changes. Threads may share it."""
        found: tuple[T] | None = self._answers.get(question)
        if found is not None:
            return found[0]
        made = answer()
        if len(self._answers) >= _MOST_ANSWERS:
            self._answers.clear()
        self._answers[question] = (made,)
        return made

    def sources(self, workspace: str, asset_type: str | None = None) -> list[Mapping[str, Any]]:
        """The sources that a workspace sees: its own, and those that all share and none of its own
        hides."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for source in self.state.get("sources", ()):
            place = (source["assetType"], source["id"])
            if source["workspace"] == workspace or (not source["workspace"] and place not in found):
                found[place] = source
        return [one for one in found.values() if asset_type in (None, one["assetType"])]

    def keys(self, workspace: str, asset_type: str) -> set[str]:
        """The keys of the sources of a type that a workspace sees."""
        return {
            source_key(one["workspace"], one["id"]) for one in self.sources(workspace, asset_type)
        }

    def model(self, workspace: str, source_id: str, name: str) -> Entry | None:
        for one in self.sources(workspace, "models"):
            if one["id"] == source_id:
                return self._by_name.get((source_key(one["workspace"], source_id), name))
        return None

    def server(self, workspace: str, number: int) -> Entry | None:
        entry = self._by_id.get(number)
        if entry is None or entry.source not in self.keys(workspace, "mcp_servers"):
            return None
        return entry


_current: Latest[str, Generation] = Latest("catalog")
_earlier: Latest[str, Generation] = Latest("catalog that was replaced")


def current() -> Generation:
    """What is read now. Raises TemporarilyUnavailable: it changes faster than it can be read."""
    for _ in range(_ATTEMPTS):
        head = catalog.current()
        held = _current.get(head.generation) or _read(head)
        if held is not None:
            _keep(held)
            return held.stating(head.state)
    raise TemporarilyUnavailable("The catalog is being loaded. Try again.")


def of(generation: str) -> Generation | None:
    """One that was read by its name; None if it no longer can be. No request where this process
    holds it, else two."""
    held = _current.get(generation) or _earlier.get(generation)
    if held is None:
        head = catalog.earlier(generation)
        held = None if head is None else _read(head)
        if held is not None and head is not None:
            held = held.stating(head.state)
            _earlier.put(generation, held)
    return held


def _keep(held: Generation) -> None:
    if _current.get(held.id) is None and (former := _current.put(held.id, held)):
        _earlier.put(*former)


def _read(head: Current) -> Generation | None:
    shards = catalog.shards(head.generation, head.shards) if head.shards else []
    if shards is None:
        return None
    forms: Forms = {}
    entries = [
        of_stored(part["k"], part["s"], one, forms)
        for shard in shards
        for part in shard
        for one in part["e"]
    ]
    entries.sort(key=lambda entry: (entry.name, entry.id))
    return Generation(head.generation, entries).stating(head.state)
