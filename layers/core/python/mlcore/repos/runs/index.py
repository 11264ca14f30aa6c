"""Ids of runs out of the indexes of an experiment, page by page; knows no filter and reads no run.

Local indexes are strongly consistent. RANK, DLINK and FTS items follow the runs through the stream:
the runs that they may be wrong about are marked, which must be read *before* them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Protocol

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.models.base import KEY
from mlcore.models.index import DatasetLink, EntityEntry, Pending, RankParam
from mlcore.search.grammar import Comparison
from mlcore.search.match import value_test
from mlcore.search.plan import (
    Access,
    DatasetLinks,
    NamePrefix,
    ParamTexts,
    ParamValue,
    Status,
)

PAGE_IDS = 1000
GROWTH = 4
"""Each page of a range is so many times as long as the one before it."""
MARKS_PAGE = 10_000
"""A request reads as many marks as fit 1 MB."""
RUN_COST = 10
"""What reading a run costs, in index entries."""

FEW = 250
"""So many entries are read at least: a further round trip costs as much."""

RUN, TRACE = "run", "trace"


class Range(Protocol):
    """What of an index is read on demand."""

    @property
    def done(self) -> bool: ...

    def read(self) -> object: ...


class Entries:
    """The entries of one range of an index, read on demand. ``items`` grows, ``done`` tells the
    end.

    Args:
        keep: which of the entries count.
        first: how many the first page has; later ones are longer.
    """

    def __init__(
        self,
        experiment_id: str,
        keep: Callable[[Raw], bool] | None = None,
        first: int | None = None,
        **query: Any,
    ) -> None:
        self._experiment_id = experiment_id
        self._query = query
        self._keep = keep
        self._next = PAGE_IDS if first is None else first
        self._start: Raw | None = None
        self.items: list[Raw] = []
        self.seen = 0
        self.done = False

    def read(self, limit: int | None = None) -> list[Raw]:
        """One request; the entries that it added."""
        if limit is None:
            limit, self._next = self._next, self._next * GROWTH
        page = table.query(
            keys.experiment(self._experiment_id).pk,
            start=self._start,
            limit=limit,
            **self._query,
        )
        self._start = page.last_key
        self.done = page.last_key is None
        self.seen += len(page.items)
        keep = self._keep
        added = page.items if keep is None else [item for item in page.items if keep(item)]
        self.items += added
        return added

    def hold(self, most: int) -> None:
        """Reads no more than so many with the next request."""
        self._next = min(self._next, most)

    def places(self) -> list[Key]:
        """What the entries read so far name."""
        return [place_of(self._experiment_id, item) for item in self.items]


class Candidates:
    """Ranges whose entries together name every entity that an access holds."""

    __slots__ = ("access", "beside", "late", "ranges")

    def __init__(self, access: str, *ranges: Range) -> None:
        self.access = access
        """The name of the access."""
        self.ranges: tuple[Range, ...] = ranges
        self.late = False
        """Whether it may not name those that are marked."""
        self.beside = 0
        """So many must be looked at as well."""

    @property
    def done(self) -> bool:
        return all(entries.done for entries in self.ranges)

    @property
    def seen(self) -> int:
        return sum(entries.seen for entries in self._entries())

    @property
    def named(self) -> int:
        """How many entities it names so far."""
        return sum(len(entries.items) for entries in self._entries())

    @property
    def cost(self) -> float:
        """Of what was read, and of the runs that it names."""
        return self.seen + RUN_COST * (self.beside + self.named)

    @property
    def most(self) -> int | None:
        """How many entities it can name at most, where that is known before they are read."""
        return None

    def places(self) -> dict[Key, None]:
        return dict.fromkeys(key for entries in self._entries() for key in entries.places())

    def hold(self, most: int) -> None:
        """Reads no more than so many with the next request of a range."""
        for entries in self._entries():
            entries.hold(most)

    def _entries(self) -> list[Entries]:
        return [entries for entries in self.ranges if isinstance(entries, Entries)]

    def follow(self) -> None:
        """After each reading: what was read may lead to other ranges."""


def place_of(experiment_id: str, entry: Raw) -> Key:
    """The source item that an entry names."""
    named = EntityEntry.of(entry)
    run_id = named.run_id or named.entity_id
    if run_id is None:
        return key_in(entry)
    if named.entity_type == TRACE:
        return keys.trace(experiment_id, run_id)
    return keys.run(experiment_id, run_id)


def is_asynchronous(access: Access) -> bool:
    """Whether the indexer writes the entries."""
    return not isinstance(access, NamePrefix | Status)


def candidates(experiment_id: str, access: Access) -> list[Candidates]:
    """Each of them names every run that an access holds, but perhaps for marked ones; for all but
    :class:`Text`."""
    return [Candidates(type(access).__name__, _entries(experiment_id, access))]


def _entries(experiment_id: str, access: Access) -> Entries:
    match access:
        case ParamValue(key, value):
            prefix = keys.rank_param_value_prefix(key, value)
            return Entries(experiment_id, prefix=prefix, attributes=[RankParam.run_id])
        case ParamTexts(condition, begin):
            holds, param = value_test(condition), RankParam.of
            return Entries(
                experiment_id,
                keep=lambda entry: holds(param(entry).value),
                prefix=keys.rank_param_begin(condition.key, begin),
                attributes=[RankParam.run_id, RankParam.value],
            )
        case DatasetLinks(condition):
            return _links(experiment_id, condition)
        case Status(status):
            return _local(experiment_id, "LSI3", keys.lsi3_run_prefix(status))
        case NamePrefix(text, whole):
            prefix = keys.lsi4_run_name_prefix(text) if whole else keys.lsi4_run_begin(text)
            return _local(experiment_id, "LSI4", prefix)
    raise TypeError(access)


def _links(experiment_id: str, condition: Comparison) -> Entries:
    """Every link of the experiment is read: they are ordered by run."""
    holds, link = value_test(condition), DatasetLink.of
    asked, keep = [DatasetLink.run_id], None
    if condition.key == "name":
        asked, keep = [*asked, DatasetLink.name], lambda entry: holds(link(entry).name)
    elif condition.key == "digest":
        asked, keep = [*asked, DatasetLink.digest], lambda entry: holds(link(entry).digest)
    prefix = keys.dataset_links_prefix()
    return Entries(experiment_id, keep=keep, prefix=prefix, attributes=asked)


def runs_of_stages(experiment_id: str, stages: Sequence[str]) -> Entries:
    """All runs by start time, newest first: those whose own stage is the one given, or all."""
    if len(stages) == 1:
        prefix = keys.lsi1_run_prefix(stages[0])
        return _local(experiment_id, "LSI1", prefix, descending=True)
    return _local(experiment_id, "LSI2", keys.lsi2_run_prefix(), descending=True)


class Marks:
    """The runs of an experiment that the indexer has not followed yet, however many."""

    def __init__(self, experiment_id: str) -> None:
        self._experiment_id = experiment_id
        self._marked = Entries(
            experiment_id, index="LSI5", prefix=keys.lsi5_run_mark_prefix(), attributes=KEY
        )
        # Items of earlier versions, each of which marks a write.
        self._pending = Entries(
            experiment_id, prefix=keys.pending_prefix("run"), attributes=[Pending.entity_id]
        )

    def reads(self) -> list[Callable[[], None]]:
        """What must be called, side by side, before :meth:`runs`."""
        return [partial(_read_all, self._marked), partial(_read_all, self._pending)]

    def runs(self) -> set[Key]:
        return {*map(key_in, self._marked.items), *self._pending.places()}


def _read_all(entries: Entries) -> None:
    while not entries.done:
        entries.read(MARKS_PAGE)


def begin(competitors: Sequence[Candidates]) -> None:
    """Reads the first page of each, side by side. Where one is known to name few, more than so many
    entries of another would cost more than they can spare."""
    known = [(one.most, one) for one in competitors if one.most is not None]
    if known:
        fewest, which = min(known, key=itemgetter(0))
        for one in competitors:
            if one is not which:
                one.hold(max(fewest, FEW))
    while not any(one.done for one in competitors):
        waiting = [one for one in competitors if one.seen < PAGE_IDS]
        if not waiting:
            return
        read(waiting)


def race(competitors: Sequence[Candidates]) -> list[Candidates]:
    """Reads side by side until no other can cost less than the cheapest that has ended; all that
    have ended, the cheapest first."""
    while True:
        ended = sorted((one for one in competitors if one.done), key=lambda one: one.cost)
        running = [
            one for one in competitors if not one.done and (not ended or one.cost < ended[0].cost)
        ]
        if ended and not running:
            return ended
        for one in running if ended else ():
            # Beyond that it cannot cost less.
            one.hold(max(FEW, int(ended[0].cost - one.cost) // (1 + RUN_COST)))
        read(running)


def read(competitors: Sequence[Candidates]) -> None:
    """The next page of each range, side by side."""
    ranges = dict.fromkeys(entries for one in competitors for entries in one.ranges)
    table.parallel([entries.read for entries in ranges if not entries.done])
    for one in competitors:
        one.follow()


def _local(experiment_id: str, index: str, prefix: str, *, descending: bool = False) -> Entries:
    return Entries(
        experiment_id,
        index=index,
        prefix=prefix,
        descending=descending,
        attributes=KEY,
    )
