"""``import`` and ``compare`` of ``python -m local.admin``: everything of an MLflow server, item by
item.

Both read each item from the server and from the table; ``import`` writes what differs and reads it
again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from botocore.exceptions import BotoCoreError

from local.transfer import files, models, registry, runs, traces
from local.transfer.experiments import Experiments
from local.transfer.item import Difference, Item, differences, digest
from local.transfer.journal import Journal
from local.transfer.progress import Progress
from local.transfer.rest import Server, SourceFailed
from local.transfer.source import Source, proxied
from mlcore import errors
from mlcore.entities import Experiment

WORKERS = 8
SHOWN = 100


class Wish(NamedTuple):
    """What the user asked for."""

    url: str
    experiments: Sequence[str]
    parts: Sequence[str]
    journal: Path | None
    write: bool


class Failure(NamedTuple):
    item: str
    message: str


class _Outcome(NamedTuple):
    wrote: bool
    different: Sequence[Difference] = ()
    failure: Failure | None = None


def run(wish: Wish) -> int:
    """0 if the table has all that the server has, 1 if something differs or failed."""
    return _Transfer(wish).run()


class _Transfer:
    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._journal = Journal(wish.journal)
        self._experiments = Experiments(self._journal)
        self._source = Source(Server(wish.url), self._experiments.target_of)
        self._progress = Progress()
        self._different: list[Difference] = []
        self._failures: list[Failure] = []
        self._elsewhere: set[str] = set()
        self._seen: set[str] = set()

    def run(self) -> int:
        try:
            with ThreadPoolExecutor(WORKERS) as pool:
                self._pool = pool
                self._everything()
        except SourceFailed as failed:
            self._progress.end()
            print(f"local.admin: {failed}", file=sys.stderr)
            return 1
        self._progress.end()
        return self._report()

    def _everything(self) -> None:
        for experiment in self._source.experiments(list(self._wish.experiments)):
            self._experiment(experiment)
        if "models" in self._wish.parts and not self._wish.experiments:
            server = self._source.server
            self._each("models", [registry.item(server, name) for name in registry.names(server)])

    def _experiment(self, experiment: Experiment) -> None:
        source, parts, name = self._source, self._wish.parts, experiment.name
        self._each(name, [self._experiments.item(experiment)])
        if "runs" in parts:
            made = list(source.runs(experiment.experiment_id))
            self._each(f"runs of {name}", [runs.item(source, run_id) for run_id, _ in made])
            self._files(name, [location for _, location in made])
        if "models" in parts:
            logged = list(source.logged_models(experiment.experiment_id))
            self._each(f"logged models of {name}", list(map(models.item, logged)))
            self._files(name, [one.artifact_location for one in logged])
        if "traces" in parts:
            found = list(traces.listed(source, experiment.experiment_id))
            self._each(f"traces of {name}", [traces.item(source, one) for one in found])
            self._files(name, map(traces.location, found))

    def _files(self, name: str, locations: Iterable[str]) -> None:
        if "artifacts" not in self._wish.parts:
            return
        items = []
        for location in filter(None, locations):
            path = proxied(location)
            if path is None:
                self._elsewhere.add(location)
            elif path not in self._seen:
                self._seen.add(path)
                items.append(files.item(self._source.server, path))
        self._each(f"files of {name}", items)

    def _each(self, place: str, items: Sequence[Item]) -> None:
        self._progress.enter(place, len(items))
        for item, outcome in zip(items, self._pool.map(self._bring, items), strict=True):
            self._progress.step(item.kind, wrote=outcome.wrote)
            self._different += outcome.different
            if outcome.failure is not None:
                self._failures.append(outcome.failure)

    def _bring(self, item: Item) -> _Outcome:
        wrote = False
        try:
            outline = item.outline or item.want
            name = f"{item.kind} {item.name}"
            known = self._wish.write and item.outline is not None
            told = digest(outline()) if known else ""
            if known and self._journal.knows(name, told) and item.there():
                return _Outcome(wrote=False)
            want, have = item.want(), item.have()
            different = differences(item, want, have)
            if different and self._wish.write:
                wrote = True
                item.write(want, have)
                different = differences(item, want, item.have())
            if known and not different:
                self._journal.add(name, told)
            return _Outcome(wrote, different)
        except (SourceFailed, errors.MlflowError) as error:
            message = error.message if isinstance(error, errors.MlflowError) else str(error)
            return _Outcome(wrote, (), Failure(f"{item.kind} {item.name}", message))
        except (BotoCoreError, OSError) as error:
            return _Outcome(wrote, (), Failure(f"{item.kind} {item.name}", repr(error)))

    def _report(self) -> int:
        for one in self._different[:SHOWN]:
            print(one)
        if len(self._different) > SHOWN:
            print(f"and {len(self._different) - SHOWN} more differences")
        for failure in self._failures[:SHOWN]:
            print(f"{failure.item}: {failure.message}", file=sys.stderr)
        for location in sorted({_root(one) for one in self._elsewhere}):
            print(f"files at {location} stay where they are", file=sys.stderr)
        told = []
        for kind, count in sorted(self._progress.counts.items()):
            changed = f" ({self._progress.written[kind]} written)" if self._wish.write else ""
            told.append(f"{kind}: {count}{changed}")
        print(", ".join(told))
        print(f"{len(self._different)} differences, {len(self._failures)} failures")
        return 1 if self._different or self._failures else 0


def _root(location: str) -> str:
    """The server, or the bucket, of a location, or the folder above."""
    scheme, separator, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator else location.rpartition("/")[0]
