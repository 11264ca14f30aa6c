"""``python -m local.admin import`` and ``compare``: compare each item of an MLflow server with the
table's. ``import`` writes one that differs and reads it again, and skips those in its journal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from botocore.exceptions import BotoCoreError

from local import program_name
from mlcore import errors
from mlcore.auth.permissions import EXPERIMENT
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from operate.transfer import (
    accounts,
    datasets,
    files,
    gateway,
    guardrails,
    issues,
    label_schemas,
    logged_models,
    mcp_servers,
    registry,
    review_queues,
    runs,
    scorers,
    target_inventory,
    traces,
    webhooks,
    workspaces,
)
from operate.transfer.experiments import Experiments
from operate.transfer.journal import Journal
from operate.transfer.mlflow_client import Server, SourceFailed
from operate.transfer.progress import TransferProgress
from operate.transfer.source_reader import SourceReader, proxy_path
from operate.transfer.transfer_item import (
    Difference,
    Surplus,
    TransferItem,
    differences,
    digest,
    journal_key,
)

WORKERS = 8
SHOWN = 100


class TransferOptions(NamedTuple):
    """The options of ``import``, which copies from an MLflow server, and of ``compare``."""

    url: str
    experiments: Sequence[str]
    parts: Sequence[str]
    journal: Path | None
    write: bool
    files: Path | None = None  # the folder that the server's artifact proxy serves, if known


class TransferFailure(NamedTuple):
    item: str
    message: str


class _Outcome(NamedTuple):
    wrote: bool
    different: Sequence[Difference] = ()
    failure: TransferFailure | None = None


def run(options: TransferOptions) -> int:
    """Runs an import from an MLflow server, or a comparison with it. Returns 0 if the table then
    has what was chosen of the server's data, 1 if not or if the server cannot be read."""
    return Transfer(options).run()


class Transfer:
    """Transfers or compares the data of an MLflow server. Subclasses for other sources override
    :meth:`everything`."""

    def __init__(self, options: TransferOptions) -> None:
        self.options = options
        self._journal = Journal(options.journal, write=options.write)
        self._experiments = Experiments(self._journal, write=options.write)
        self.server = Server(options.url, options.files)
        self._progress = TransferProgress()
        self._different: list[Difference | Surplus] = []
        self._own: list[Surplus] = []
        self._failures: list[TransferFailure] = []
        self._elsewhere, self._seen, self._named = set[str](), set[str](), set[str]()
        self._webhooks = self._users = 0
        self._gateway_ids: dict[str, str] = {}
        self._unset: list[str] = []

    def run(self) -> int:
        try:
            with ThreadPoolExecutor(WORKERS) as pool:
                self._pool = pool
                self.everything()
        except SourceFailed as failed:
            self._progress.end()
            print(program_name.complaint(failed), file=sys.stderr)
            return 1
        self._progress.end()
        return self._report()

    def everything(self) -> None:
        listed = workspaces.listed(self.server)
        self.each("workspaces", list(workspaces.items(listed)))
        if not listed:
            self._workspace(self.server)
        for workspace in listed:
            self._workspace(self.server.within(workspace["name"]))
        missing = set(self.options.experiments) - self._named
        if missing:
            raise SourceFailed(404, f"The server has no experiment {sorted(missing)[0]!r}.")
        if "users" in self.options.parts and not self.options.experiments:
            # Grants name other imported entities, whose ids in the table are known by now.
            accounts_read = accounts.read(self.server, self._target_of)
            self.each("roles", accounts_read.roles)
            self.each("users", accounts_read.users)
            self._users = len(accounts_read.users)

    def _workspace(self, server: Server) -> None:
        source, parts = SourceReader(server, self._experiments.target_of), self.options.parts
        experiments = source.experiments(list(self.options.experiments))
        self._named.update(experiment.name for experiment in experiments)
        evaluated = datasets.listed(server) if "evaluation" in parts else None
        for experiment in experiments:
            self._experiment(source, experiment)
        everything = not self.options.experiments
        configured = gateway.read(server) if "gateway" in parts and everything else None
        if configured is not None:
            self._gateway(configured)
        if evaluated is not None:
            for experiment in experiments:
                if experiment.lifecycle_stage == ACTIVE:
                    self._evaluation(source, experiment)
        if not everything:
            return
        if configured is not None:
            self._gateway_uses(configured)
        space = server.workspace
        if evaluated is not None:
            # Datasets name experiments, whose ids in the table are known by now.
            target_of = self._experiments.target_of
            self.each("datasets", [datasets.item(server, each, target_of) for each in evaluated])
            named = [each["dataset_id"] for each in evaluated]
            self._surplus("evaluation dataset", named, target_inventory.dataset_ids(space))
        ids = [self._experiments.target_of(each.experiment_id) for each in experiments]
        self._surplus("experiment", ids, target_inventory.experiment_ids(space))
        if "models" in parts:
            names = registry.names(server)
            self.each("models", [registry.item(server, name) for name in names])
            self._surplus(
                "registered model",
                [registry.identity(space, name) for name in names],
                (
                    registry.identity(space, registered_model_name)
                    for registered_model_name in target_inventory.registered_model_names(space)
                ),
            )
        if "mcp-servers" in parts:
            self._mcp_servers(server)
        if "webhooks" in parts:
            items = list(webhooks.items(server))
            self.each("webhooks", items)
            self._webhooks += len(items)

    def _experiment(self, source: SourceReader, experiment: Experiment) -> None:
        parts, name = self.options.parts, experiment.name
        self.each(name, [self._experiments.item(experiment)])
        target_id = self._experiments.target_of(experiment.experiment_id)
        if "runs" in parts:
            made = list(source.runs(experiment.experiment_id))
            self.each(f"runs of {name}", [runs.item(source, run_id) for run_id, _ in made])
            self._surplus(
                "run", (run_id for run_id, _ in made), target_inventory.run_ids(target_id)
            )
            self._files(source, name, [location for _, location in made])
        if "models" in parts:
            logged = list(source.logged_models(experiment.experiment_id))
            items = [logged_models.item(model, source.workspace) for model in logged]
            self.each(f"logged models of {name}", items)
            there = target_inventory.logged_model_ids(target_id)
            self._surplus("logged model", (model.model_id for model in logged), there)
            self._files(source, name, [model.artifact_location for model in logged])
        if "traces" in parts:
            listed = list(traces.listed(source, experiment.experiment_id))
            self.each(f"traces of {name}", [traces.item(source, trace) for trace in listed])
            self._surplus(
                "trace", (trace.trace_id for trace in listed), target_inventory.trace_ids(target_id)
            )
            self._files(source, name, map(traces.location, listed))

    def _evaluation(self, source: SourceReader, experiment: Experiment) -> None:
        """Transfers scorers, label schemas, review queues and issues of an active experiment. No
        server lists those of a deleted one."""
        name, source_id = experiment.name, experiment.experiment_id
        target = experiment._replace(experiment_id=self._experiments.target_of(source_id))
        judges = scorers.names(source, source_id)
        self.each(
            f"scorers of {name}",
            [scorers.item(source, source_id, judge, target) for judge in judges],
        )
        self._surplus(
            "scorer",
            [scorers.identity(target.experiment_id, judge) for judge in judges],
            (
                scorers.identity(target.experiment_id, scorer_name)
                for scorer_name in target_inventory.scorer_names(target)
            ),
        )
        pairs = label_schemas.listed(source, source_id, target)
        self.each(f"label schemas of {name}", [label_schemas.item(pair, target) for pair in pairs])
        schema_ids = {pair.fields["schema_id"]: pair.schema_id for pair in pairs}
        there = target_inventory.label_schema_ids(target)
        self._surplus("label schema", schema_ids.values(), there)
        queues = review_queues.listed(source, source_id, target, schema_ids)
        self.each(f"review queues of {name}", queues)
        there = target_inventory.review_queue_ids(target)
        self._surplus("review queue", [queue.identity for queue in queues], there)
        items = issues.listed(source, source_id, target)
        self.each(f"issues of {name}", items)
        self._surplus("issue", [item.name for item in items], target_inventory.issue_ids(target))

    def _gateway(self, snapshot: gateway.GatewaySnapshot) -> None:
        """Transfers secrets, models and endpoints of the gateway, after their experiments."""
        self._gateway_ids.update(snapshot.ids)
        target_of, space = self._experiments.target_of, snapshot.server.workspace
        self.each(
            "gateway secrets", [gateway.secret(snapshot, secret) for secret in snapshot.secrets]
        )
        if self.options.write:
            self._unset += gateway.unset_secrets(space)
        definitions = [
            gateway.model_definition(snapshot, model_definition)
            for model_definition in snapshot.model_definitions
        ]
        self.each("gateway models", definitions)
        endpoints = [
            gateway.endpoint(snapshot, endpoint, target_of) for endpoint in snapshot.endpoints
        ]
        self.each("gateway endpoints", endpoints)
        there = target_inventory.gateway_parts(space)
        for kind, ids in (
            ("gateway secret", there.secrets),
            ("gateway model", there.model_definitions),
            ("gateway endpoint", there.endpoints),
        ):
            self._surplus(kind, snapshot.ids.values(), ids)

    def _gateway_uses(self, snapshot: gateway.GatewaySnapshot) -> None:
        """Transfers bindings, budgets and guardrails. They name scorers, which were transferred
        before."""
        bound = gateway.bindings(snapshot)
        self.each("gateway bindings", bound)
        policies = guardrails.budget_policies(snapshot)
        self.each("gateway budgets", policies)
        try:
            watching = guardrails.guardrails(snapshot, self._experiments.target_of)
            used = guardrails.uses(snapshot)
        except SourceFailed as failed:
            if not failed.forbidden:
                raise
            # Without their guardrails the endpoints would be unprotected.
            self._failures.append(TransferFailure("guardrails of the gateway", str(failed)))
            watching, used = [], []
        self.each("gateway guardrails", watching)
        self.each("gateway guardrails of endpoints", used)
        there = target_inventory.gateway_uses(snapshot.server.workspace)
        for items, kind, ids in (
            (bound, gateway.BINDING, there.bindings),
            (policies, guardrails.POLICY, there.budget_policies),
            (watching, guardrails.GUARDRAIL, there.guardrails),
            (used, guardrails.USE, there.uses),
        ):
            self._surplus(kind, [item.name for item in items], ids)

    def _mcp_servers(self, server: Server) -> None:
        listed, space = mcp_servers.listed(server), server.workspace
        self.each("MCP servers", [mcp_servers.item(server, mcp_server) for mcp_server in listed])
        self._surplus(
            "MCP server",
            [mcp_servers.identity(space, mcp_server["name"]) for mcp_server in listed],
            (
                mcp_servers.identity(space, mcp_server_name)
                for mcp_server_name in target_inventory.mcp_server_names(space)
            ),
        )

    def _target_of(self, kind: str, source_id: str) -> str:
        if kind == EXPERIMENT:
            return self._experiments.target_of(source_id)
        return self._gateway_ids.get(source_id, source_id)

    def _surplus(self, kind: str, names: Iterable[str], there: Iterable[str]) -> None:
        """When comparing, records the entities that only the table has."""
        if self.options.write:
            return
        known = set(names)
        for identity in there:
            if identity not in known:
                imported = self._journal.has(journal_key(kind, identity))
                (self._different if imported else self._own).append(
                    Surplus(kind, identity, imported)
                )

    def _files(self, source: SourceReader, name: str, locations: Iterable[str]) -> None:
        if "artifacts" not in self.options.parts:
            return
        items = []
        for location in filter(None, locations):
            path = proxy_path(location, source.server.files)
            if path is None:
                self._elsewhere.add(location)
            elif path not in self._seen:
                self._seen.add(path)
                items.append(files.item(source.server, path))
        self.each(f"files of {name}", items)

    def each(self, heading: str, items: Sequence[TransferItem]) -> None:
        self._progress.enter(heading, len(items))
        for item, outcome in zip(items, self._pool.map(self._bring, items), strict=True):
            self._progress.step(item.kind, wrote=outcome.wrote)
            self._different += outcome.different
            if outcome.failure is not None:
                self._failures.append(outcome.failure)

    def _bring(self, item: TransferItem) -> _Outcome:
        wrote = False
        try:
            outline = item.outline or item.want
            name = item.known_as
            known = self.options.write and item.outline is not None
            outline_digest = digest(outline()) if known else ""
            if known and self._journal.knows(name, outline_digest) and item.exists():
                return _Outcome(wrote=False)
            want, have = item.want(), item.have()
            different = differences(item, want, have)
            if different and self.options.write:
                wrote = True
                item.write(want, have)
                different = differences(item, want, item.have())
            if self.options.write and not different:
                self._journal.add(name, outline_digest)
            return _Outcome(wrote, different)
        except (SourceFailed, errors.MlflowError) as error:
            message = error.message if isinstance(error, errors.MlflowError) else str(error)
            return _Outcome(wrote, (), TransferFailure(f"{item.kind} {item.name}", message))
        except (BotoCoreError, OSError) as error:
            return _Outcome(wrote, (), TransferFailure(f"{item.kind} {item.name}", repr(error)))

    def _report(self) -> int:
        for label in self._different[:SHOWN]:
            print(label)
        if len(self._different) > SHOWN:
            print(f"and {len(self._different) - SHOWN} more differences")
        for failure in self._failures[:SHOWN]:
            print(f"{failure.item}: {failure.message}", file=sys.stderr)
        for location in sorted({_root(location) for location in self._elsewhere}):
            print(f"files at {location} were not copied", file=sys.stderr)
        self._report_own()
        parts = []
        for kind, count in sorted(self._progress.counts.items()):
            changed = f" ({self._progress.written[kind]} written)" if self.options.write else ""
            parts.append(f"{kind}: {count}{changed}")
        print(", ".join(parts))
        print(f"{len(self._different)} differences, {len(self._failures)} failures")
        return 1 if self._different or self._failures else 0

    def _report_own(self) -> None:
        """Prints the entities that only the table has, and the values that the user has to set
        after an import, such as passwords."""
        for label in self._own[:SHOWN]:
            print(label, file=sys.stderr)
        if len(self._own) > SHOWN:
            print(f"and {len(self._own) - SHOWN} more only in the target", file=sys.stderr)
        if self._webhooks and self.options.write:
            print("webhooks have no secret and are disabled: set both anew", file=sys.stderr)
        if self._progress.written["scorer"]:
            print("no scorer judges new traces by itself: switch each on anew", file=sys.stderr)
        for name in self._unset:
            print(f"the gateway's secret {name!r} has no value: set it anew", file=sys.stderr)
        if self._users and self.options.write:
            print("users have no password: set each anew", file=sys.stderr)


def _root(location: str) -> str:
    """Returns the server or bucket of a location, or the parent folder of a path."""
    scheme, separator, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator else location.rpartition("/")[0]
