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

from mlcore import errors
from mlcore.entities.experiments import Experiment
from mlcore.entities.stages import ACTIVE
from operate.transfer import (
    accounts,
    datasets,
    files,
    issues,
    label_schemas,
    models,
    registry,
    review_queues,
    runs,
    scorers,
    surplus,
    traces,
    webhooks,
    workspaces,
)
from operate.transfer.experiments import Experiments
from operate.transfer.item import Difference, Item, Surplus, differences, digest, known_as
from operate.transfer.journal import Journal
from operate.transfer.progress import Progress
from operate.transfer.rest import Server, SourceFailed
from operate.transfer.source import Source, proxied

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
    return Transfer(wish).run()


class Transfer:
    """Of an MLflow server; other sources override what is everything."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self._journal = Journal(wish.journal, write=wish.write)
        self._experiments = Experiments(self._journal, write=wish.write)
        self.server = Server(wish.url)
        self._progress = Progress()
        self._different: list[Difference | Surplus] = []
        self._own: list[Surplus] = []
        self._failures: list[Failure] = []
        self._elsewhere: set[str] = set()
        self._seen: set[str] = set()
        self._named: set[str] = set()
        self._webhooks = self._users = 0

    def run(self) -> int:
        try:
            with ThreadPoolExecutor(WORKERS) as pool:
                self._pool = pool
                self.everything()
        except SourceFailed as failed:
            self._progress.end()
            print(f"local.admin: {failed}", file=sys.stderr)
            return 1
        self._progress.end()
        return self._report()

    def everything(self) -> None:
        told = workspaces.listed(self.server)
        self.each("workspaces", list(workspaces.items(told)))
        if not told:
            self._workspace(self.server)
        for one in told:
            self._workspace(self.server.within(one["name"]))
        missing = set(self.wish.experiments) - self._named
        if missing:
            raise SourceFailed(404, f"The server has no experiment {sorted(missing)[0]!r}.")
        if "users" in self.wish.parts and not self.wish.experiments:
            # Their grants name experiments, whose ids in the table are known by now.
            found = accounts.read(self.server, self._experiments.target_of)
            self.each("roles", found.roles)
            self.each("users", found.users)
            self._users = len(found.users)

    def _workspace(self, server: Server) -> None:
        source, parts = Source(server, self._experiments.target_of), self.wish.parts
        found = source.experiments(list(self.wish.experiments))
        self._named.update(experiment.name for experiment in found)
        evaluated = datasets.listed(server) if "evaluation" in parts else None
        for experiment in found:
            self._experiment(source, experiment)
            if evaluated is not None and experiment.lifecycle_stage == ACTIVE:
                self._evaluation(source, experiment)
        if self.wish.experiments:
            return
        space = server.workspace
        if evaluated is not None:
            # They name experiments, whose ids in the table are known by now.
            target_of = self._experiments.target_of
            self.each("datasets", [datasets.item(server, one, target_of) for one in evaluated])
            named = [one["dataset_id"] for one in evaluated]
            self._surplus("evaluation dataset", named, surplus.dataset_ids(space))
        ids = [self._experiments.target_of(one.experiment_id) for one in found]
        self._surplus("experiment", ids, surplus.experiment_ids(space))
        if "models" in parts:
            names = registry.names(server)
            self.each("models", [registry.item(server, name) for name in names])
            self._surplus(
                "registered model",
                [registry.identity(space, name) for name in names],
                (registry.identity(space, one) for one in surplus.registered_model_names(space)),
            )
        if "webhooks" in parts:
            items = list(webhooks.items(server))
            self.each("webhooks", items)
            self._webhooks += len(items)

    def _experiment(self, source: Source, experiment: Experiment) -> None:
        parts, name = self.wish.parts, experiment.name
        self.each(name, [self._experiments.item(experiment)])
        target_id = self._experiments.target_of(experiment.experiment_id)
        if "runs" in parts:
            made = list(source.runs(experiment.experiment_id))
            self.each(f"runs of {name}", [runs.item(source, run_id) for run_id, _ in made])
            self._surplus("run", (run_id for run_id, _ in made), surplus.run_ids(target_id))
            self._files(source, name, [location for _, location in made])
        if "models" in parts:
            logged = list(source.logged_models(experiment.experiment_id))
            items = [models.item(one, source.workspace) for one in logged]
            self.each(f"logged models of {name}", items)
            there = surplus.logged_model_ids(target_id)
            self._surplus("logged model", (one.model_id for one in logged), there)
            self._files(source, name, [one.artifact_location for one in logged])
        if "traces" in parts:
            found = list(traces.listed(source, experiment.experiment_id))
            self.each(f"traces of {name}", [traces.item(source, one) for one in found])
            self._surplus("trace", (one.trace_id for one in found), surplus.trace_ids(target_id))
            self._files(source, name, map(traces.location, found))

    def _evaluation(self, source: Source, experiment: Experiment) -> None:
        """What an active experiment is judged with; of a deleted one no server tells it."""
        name, source_id = experiment.name, experiment.experiment_id
        target = experiment._replace(experiment_id=self._experiments.target_of(source_id))
        judges = scorers.names(source, source_id)
        self.each(
            f"scorers of {name}", [scorers.item(source, source_id, one, target) for one in judges]
        )
        self._surplus(
            "scorer",
            [scorers.identity(target, one) for one in judges],
            (scorers.identity(target, one) for one in surplus.scorer_names(target)),
        )
        asked = label_schemas.listed(source, source_id, target)
        self.each(f"label schemas of {name}", [label_schemas.item(one, target) for one in asked])
        schema_ids = {one.told["schema_id"]: one.schema_id for one in asked}
        there = surplus.label_schema_ids(target)
        self._surplus("label schema", schema_ids.values(), there)
        queues = review_queues.listed(source, source_id, target, schema_ids)
        self.each(f"review queues of {name}", queues)
        there = surplus.review_queue_ids(target)
        self._surplus("review queue", [one.identity for one in queues], there)
        found = issues.listed(source, source_id, target)
        self.each(f"issues of {name}", found)
        self._surplus("issue", [one.name for one in found], surplus.issue_ids(target))

    def _surplus(self, kind: str, names: Iterable[str], there: Iterable[str]) -> None:
        """Notes, when comparing, what the table has alone."""
        if self.wish.write:
            return
        known = set(names)
        for identity in there:
            if identity not in known:
                imported = self._journal.has(known_as(kind, identity))
                (self._different if imported else self._own).append(
                    Surplus(kind, identity, imported)
                )

    def _files(self, source: Source, name: str, locations: Iterable[str]) -> None:
        if "artifacts" not in self.wish.parts:
            return
        items = []
        for location in filter(None, locations):
            path = proxied(location)
            if path is None:
                self._elsewhere.add(location)
            elif path not in self._seen:
                self._seen.add(path)
                items.append(files.item(source.server, path))
        self.each(f"files of {name}", items)

    def each(self, place: str, items: Sequence[Item]) -> None:
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
            name = item.known_as
            known = self.wish.write and item.outline is not None
            told = digest(outline()) if known else ""
            if known and self._journal.knows(name, told) and item.there():
                return _Outcome(wrote=False)
            want, have = item.want(), item.have()
            different = differences(item, want, have)
            if different and self.wish.write:
                wrote = True
                item.write(want, have)
                different = differences(item, want, item.have())
            if self.wish.write and not different:
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
        self._report_own()
        told = []
        for kind, count in sorted(self._progress.counts.items()):
            changed = f" ({self._progress.written[kind]} written)" if self.wish.write else ""
            told.append(f"{kind}: {count}{changed}")
        print(", ".join(told))
        print(f"{len(self._different)} differences, {len(self._failures)} failures")
        return 1 if self._different or self._failures else 0

    def _report_own(self) -> None:
        """What is no difference, and what cannot be brought."""
        for one in self._own[:SHOWN]:
            print(one, file=sys.stderr)
        if len(self._own) > SHOWN:
            print(f"and {len(self._own) - SHOWN} more only in the target", file=sys.stderr)
        if self._webhooks and self.wish.write:
            print("webhooks have no secret and are disabled: set both anew", file=sys.stderr)
        if self._progress.written["scorer"]:
            print("no scorer judges new traces by itself: switch each on anew", file=sys.stderr)
        if self._users and self.wish.write:
            print("users have no password: set each anew", file=sys.stderr)


def _root(location: str) -> str:
    """The server, or the bucket, of a location, or the folder above."""
    scheme, separator, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator else location.rpartition("/")[0]
