"""A generation of the catalog as this process holds it: the parts of it that requests have been
about, and no others.

A generation never changes, so whoever has a part of it need only ask whether it is still the one
that is read: one consistent GetItem. The parts that a request needs are fetched side by side, and
so are the models of a page: three requests one after the other are the most.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import sub
from typing import Any, Final, TypeVar

from mlcore.catalog import candidates, columns
from mlcore.catalog.candidates import Candidates
from mlcore.catalog.columns import EMPTY, OWN, Column, Columns
from mlcore.catalog.entry import Entry, of_stored, source_key
from mlcore.memory import Latest, Memory
from mlcore.repos import catalog
from mlcore.repos.catalog import Current, Place, unpacked

T = TypeVar("T")

_MOST_ANSWERS: Final = 20
"""That a generation remembers: each may name all models."""

MODELS: Final = "models"
SERVERS: Final = "servers"
OPTIONS: Final = "options"
CANDIDATES: Final = "candidates"

_NO_MODELS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("sources", "source", "id", "name", "weight", "part", "parts"), ()),
    "artifacts": (0,),
}


class Gone(Exception):
    """A part of a generation is no longer there: somebody has loaded the catalog since."""


class Generation:
    """What a generation holds, and what its loader says of the sources. Models are known by their
    place in the order of names, artifacts by theirs among those of all models."""

    def __init__(self, head: Current) -> None:
        self.id = head.generation
        self.state: Mapping[str, Any] = head.state
        self._directory: Mapping[str, Any] = unpacked(head.directory) or {}
        self._parts: dict[str, Any] = {}
        self._answers: dict[tuple[Hashable, ...], Any] = {}
        self.lost: list[bool] = []
        """Not empty once a part was not there."""

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

    # -------------------------------------------------------------- sources

    def sources(self, workspace: str, asset_type: str | None = None) -> list[Mapping[str, Any]]:
        """The sources that a workspace sees: its own, and those that all share and none of its own
        hides."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for source in self.state.get("sources", ()):
            place = (source["assetType"], source["id"])
            if source["workspace"] == workspace or (not source["workspace"] and place not in found):
                found[place] = source
        return [one for one in found.values() if asset_type in (None, one["assetType"])]

    def keys(self, workspace: str, asset_type: str) -> frozenset[str]:
        """The keys of the sources of a type that a workspace sees."""
        return frozenset(
            source_key(one["workspace"], one["id"]) for one in self.sources(workspace, asset_type)
        )

    # -------------------------------------------------------------- parts

    def fetch(self, names: Iterable[str]) -> None:
        """Reads the parts of some names that this process does not hold, side by side. Raises
        Gone."""
        wanted = {name: self._places(name) for name in names if name not in self._parts}
        if not wanted:
            return
        found = iter(self._read([place for places in wanted.values() for place in places]))
        for name, places in wanted.items():
            self._parts[name] = [next(found) for _ in places]

    def has(self, name: str) -> bool:
        """Whether its loader wrote a part; earlier versions wrote fewer."""
        return name in self._directory

    def _places(self, name: str) -> list[Place]:
        listed = self._directory.get(name, ())
        kind, _, rest = name.partition(":")
        if kind == "attribute":
            listed = self._directory.get("attributes", {}).get(rest)
        elif kind == "properties":
            listed = self._directory["properties"][int(rest)]
        if not listed:
            return []
        return [(first, count) for first, count in (listed if name == SERVERS else [listed])]

    def _read(self, places: Sequence[Place]) -> list[Any]:
        found = catalog.parts(self.id, places) if places else []
        if found is None:
            self.lost.append(True)
            raise Gone
        return found

    def _part(self, name: str, default: Any) -> Any:
        if name not in self._parts:
            self.fetch([name])
        held = self._parts[name]
        return held[0] if held else default

    # -------------------------------------------------------------- values

    @staticmethod
    def attribute_part(level: str, name: str) -> str:
        """The part with an attribute of models, or of artifacts; for :meth:`fetch`."""
        return f"attribute:{columns.attribute_name(level, name)}"

    def properties_part(self, name: str) -> str:
        """The part with a custom property."""
        count = len(self._directory.get("properties", ()))
        return f"properties:{columns.bucket_of(name, count)}" if count else "properties"

    def attribute(self, level: str, name: str) -> Column:
        """The values of what all models, or all artifacts, may have."""
        every = self.models
        if level == OWN and name in ("id", "name"):
            return Column(range(len(every["id"])), every[name])
        if level == OWN and name in ("source_id", "sourceId"):
            ids = [key.partition("/")[2] for key in every["sources"]]
            found = [ids[at] for at in every["source"]]
            return Column(range(len(found)), found)
        data = self._part(self.attribute_part(level, name), None)
        return EMPTY if data is None else columns.of_stored(data, self.count(level))

    def custom(self, level: str, name: str) -> Columns:
        """The values of a custom property."""
        found = self._part(self.properties_part(name), {}).get(level, {}).get(name, {})
        count = self.count(level)
        return {kind: columns.of_stored(data, count) for kind, data in found.items()}

    @property
    def models(self) -> Mapping[str, Any]:
        """Of all models, in the order of their names: ``id``, ``name``, ``source`` (which of
        ``sources``), ``weight``, ``part`` (which of ``parts``); ``artifacts`` has where those of
        each begin."""
        found: Mapping[str, Any] = self._part(MODELS, _NO_MODELS)
        return found

    def count(self, level: str) -> int:
        """Of models, or of artifacts."""
        return len(self.models["id"]) if level == OWN else int(self.models["artifacts"][-1])

    @property
    def owners(self) -> list[int]:
        """Whose each artifact is."""
        begins = self.models["artifacts"]
        return self.remembered(
            ("owners",),
            lambda: [
                *chain.from_iterable(map(repeat, range(len(begins)), map(sub, begins[1:], begins)))
            ],
        )

    @property
    def candidates(self) -> Candidates:
        """The artifacts that recommendations weigh, by the usual properties."""
        return candidates.of_stored(self._part(CANDIDATES, None))

    def options(self) -> list[Mapping[str, Any]]:
        """By source and kind, what filters can be about."""
        found: list[Mapping[str, Any]] = self._part(OPTIONS, [])
        return found

    # -------------------------------------------------------------- entries

    def model(
        self, workspace: str, source_id: str, name: str, *, whole: bool = False
    ) -> Entry | None:
        """None if the workspace sees none of the name.

        Args:
            whole: with its artifacts.
        """
        for one in self.sources(workspace, "models"):
            if one["id"] == source_id:
                at = self._place(source_key(one["workspace"], source_id), name)
                return None if at is None else self.entries([at], whole=whole)[0]
        return None

    def _place(self, key: str, name: str) -> int | None:
        every = self.models
        names = every["name"]
        at = bisect_left(names, name)
        while at < len(names) and names[at] == name:
            if every["sources"][every["source"][at]] == key:
                return at
            at += 1
        return None

    def entries(self, places: Sequence[int], *, whole: bool = False) -> list[Entry]:
        """The models at some places. One round trip where this process does not hold them.

        Args:
            whole: with their artifacts.
        """
        every = self.models
        part_of = every["part"]
        found: dict[int, dict[int, Entry]] = {}
        missing = []
        for number in dict.fromkeys(part_of[at] for at in places):
            held = _entries.get((self.id, number, whole))
            if held is None:
                missing.append(number)
            else:
                found[number] = held
        wanted = [every["parts"][number] for number in missing]
        # Earlier versions stored artifacts with their models.
        apart = every.get("artifactParts") if whole else None
        if apart:
            wanted += [apart[number] for number in missing]
        parts = self._read([tuple(place) for place in wanted])
        for at, number in enumerate(missing):
            artifacts = parts[len(missing) + at] if apart else None
            entries = map(of_stored, parts[at], artifacts or repeat(()))
            found[number] = {entry.id: entry for entry in entries}
            _entries.put((self.id, number, whole), found[number])
        ids = every["id"]
        return [found[part_of[at]][ids[at]] for at in places]

    @property
    def servers(self) -> Sequence[Entry]:
        """All MCP servers, in the order of their names."""
        if SERVERS not in self._parts:
            self.fetch([SERVERS])
        parts = self._parts[SERVERS]
        return self.remembered(
            (SERVERS,), lambda: [of_stored(data) for part in parts for data in part]
        )

    def server(self, workspace: str, number: int) -> Entry | None:
        by_id = self.remembered(
            ("servers by id",), lambda: {entry.id: entry for entry in self.servers}
        )
        entry = by_id.get(number)
        if entry is None or entry.source not in self.keys(workspace, "mcp_servers"):
            return None
        return entry


_current: Latest[str, Generation] = Latest("catalog")
_earlier: Latest[str, Generation] = Latest("catalog that was replaced")
_entries: Memory[tuple[str, int, bool], dict[int, Entry]] = Memory(
    "models of the catalog", weigh=lambda part: sum(_weight(entry) for entry in part.values())
)


def _weight(entry: Entry) -> int:
    """Bytes of memory, about."""
    texts = sum(len(value) for value in entry.fields.values() if isinstance(value, str))
    own = 1000 + texts + 150 * len(entry.types)
    return own + sum(1000 + 150 * len(child.types) for child in entry.children)


def current() -> Generation:
    """What is read now. One round trip."""
    head = catalog.current()
    held = _current.get(head.generation)
    if held is None or held.lost:
        held = Generation(head)
        if former := _current.put(held.id, held):
            _earlier.put(*former)
    return held.stating(head.state)


def of(generation: str) -> Generation | None:
    """One that was read by its name; None if it no longer can be. No request where this process
    holds it, else one."""
    held = _current.get(generation) or _earlier.get(generation)
    if held is None or held.lost:
        head = catalog.earlier(generation)
        held = None if head is None else Generation(head)
        if held is not None:
            _earlier.put(generation, held)
    return held
