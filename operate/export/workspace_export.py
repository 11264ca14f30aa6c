"""``python -m local.admin export``: copies experiments with their runs, models, traces, scorers,
datasets and files from this product's REST API into the database and file folder of MLflow's own
server, and compares the copy through that server's API.

An export is an import in the other direction. MLflow's server runs on the target meanwhile. Each
item that the journal does not know is read from both servers; an item that differs is written to
the target and read again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple

from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.logged_models import LoggedModel
from mlcore.entities.traces import Trace
from operate.export import evaluation_rows, files, model_rows, run_rows, trace_rows
from operate.export.stock_store import StockStore
from operate.transfer import datasets, logged_models, registry, runs, scorers, traces, workspaces
from operate.transfer.command import Transfer, TransferOptions
from operate.transfer.mlflow_client import Json, Server, SourceFailed
from operate.transfer.source_reader import SourceReader, proxy_path
from operate.transfer.transfer_item import Content, TransferItem

_GATEWAY: Final = "gateway:/"
"""The prefix of a scorer's model if the model is an endpoint of the gateway."""


_KIND: Final = "SPAN_KIND_INTERNAL"


class ExportOptions(NamedTuple):
    """The options of the command ``export``."""

    source: str
    """The address of the product."""
    workspace: str
    database: str
    """The target's SQLAlchemy URI."""
    files: Path
    """The target's folder of files."""
    experiments: Sequence[str]
    parts: Sequence[str]
    journal: Path | None


def run(options: ExportOptions, stock_url: str, store: StockStore) -> int:
    """Exports the product's data into the database of MLflow's own server, as the options say.
    Returns 0 if that server then shows the same as the product, otherwise 1."""
    return Export(options, stock_url, store).run()


class Export(Transfer):
    """The export of one workspace of this product to MLflow's own server."""

    def __init__(self, options: ExportOptions, stock_url: str, store: StockStore) -> None:
        super().__init__(
            TransferOptions(
                url=options.source,
                experiments=options.experiments,
                parts=options.parts,
                journal=options.journal,
                write=True,
            )
        )
        self._options = options
        self._store = store
        self._stock = Server(stock_url)
        self._numbers: dict[str, str] = {}

    def everything(self) -> None:
        spaces = [workspace["name"] for workspace in workspaces.listed(self.server)]
        server = self.server.within(self._options.workspace) if spaces else self.server
        if others := set(spaces) - {self._options.workspace}:
            print(
                f"only workspace {self._options.workspace!r} is exported; export each of "
                f"{', '.join(sorted(others))} with --workspace into a database of its own",
                file=sys.stderr,
            )
        source = SourceReader(server, self._number_of)
        target = SourceReader(self._stock, str)
        experiments = source.experiments(list(self._options.experiments))
        if missing := set(self._options.experiments) - {
            experiment.name for experiment in experiments
        }:
            raise SourceFailed(404, f"The server has no experiment {sorted(missing)[0]!r}.")
        self._assign_numbers(experiments)
        self.each(
            "experiments", [self._experiment_item(target, experiment) for experiment in experiments]
        )
        self._store.number_after_inserts("experiments", "experiment_id")
        for experiment in experiments:
            self._contents(source, target, experiment)
        if not self._options.experiments:
            self._shared(server)
        deleted = [experiment for experiment in experiments if experiment.lifecycle_stage != ACTIVE]
        items = [self._stage_item(target, experiment) for experiment in deleted]
        self.each("deleted experiments", items)

    def _number_of(self, experiment_id: str) -> str:
        return self._numbers.get(experiment_id, experiment_id)

    def _assign_numbers(self, experiments: Sequence[Experiment]) -> None:
        """Chooses the target's number for each experiment: the one that an earlier export gave it,
        by the journal or by name and creation time; or 0 for an experiment with the name of an
        unused default one; otherwise its own number if that is free; otherwise the next free one.

        Raises:
            SourceFailed: the target has an experiment of the same name that was not exported.
        """
        with self._store.transaction() as rows:
            known = {str(row["experiment_id"]): row for row in rows.all("experiments")}
            unused = not rows.all("runs", experiment_id=0)
        by_name = {row["name"]: number for number, row in known.items()}
        own_numbers = [each.experiment_id for each in experiments if each.experiment_id.isdigit()]
        free = 1 + max(map(int, [*known, *own_numbers]))
        for experiment in experiments:
            own = experiment.experiment_id
            number = self._journal.target_of(own)
            if number is None and (number := by_name.get(experiment.name)) is not None:
                is_new_default = number == "0" and unused
                made_at = known[number]["creation_time"]
                if made_at != experiment.creation_time and not is_new_default:
                    raise SourceFailed(
                        409,
                        f"The target has another experiment {experiment.name!r}: choose an empty "
                        "database, or name others with --experiment.",
                    )
            if number is None and own.isdigit() and own not in known:
                number = own
            if number is None:
                number, free = str(free), free + 1
            if self._journal.target_of(own) is None:
                self._journal.map(own, number)
            self._numbers[own] = number

    def _experiment_item(self, target: SourceReader, experiment: Experiment) -> TransferItem:
        """Returns the item that transfers an experiment, except its lifecycle stage, which is
        written last."""
        number = self._numbers[experiment.experiment_id]

        def have() -> Content | None:
            stored = next(
                (
                    experiment
                    for experiment in target.experiments([])
                    if experiment.experiment_id == number
                ),
                None,
            )
            return None if stored is None else _active(stored)

        return TransferItem(
            "experiment",
            f"{experiment.name!r} ({number})",
            lambda: _active(experiment._replace(experiment_id=number)),
            have,
            lambda _want, _have: run_rows.put_experiment(self._store, experiment, int(number)),
            identity=number,
        )

    def _stage_item(self, target: SourceReader, experiment: Experiment) -> TransferItem:
        number = self._numbers[experiment.experiment_id]

        def have() -> Content:
            stages = {
                experiment.experiment_id: experiment.lifecycle_stage
                for experiment in target.experiments([])
            }
            return {"lifecycle_stage": stages.get(number)}

        return TransferItem(
            "stage",
            number,
            lambda: {"lifecycle_stage": experiment.lifecycle_stage},
            have,
            lambda _want, _have: run_rows.put_stage(self._store, experiment, int(number)),
        )

    def _contents(self, source: SourceReader, target: SourceReader, experiment: Experiment) -> None:
        name, own, parts = experiment.name, experiment.experiment_id, self._options.parts
        number = self._numbers[own]
        if "runs" in parts:
            made = list(source.runs(own))
            self.each(
                f"runs of {name}",
                [self._run_item(source, target, identifier) for identifier, _ in made],
            )
            self._copied(source, name, [location for _, location in made])
        if "models" in parts:
            models = list(source.logged_models(own))
            there = partial(_logged_model, target)
            items = [self._logged_model_item(model, there) for model in models]
            self.each(f"logged models of {name}", items)
            self._copied(source, name, [model.artifact_location for model in models])
        if "traces" in parts:
            trace_ids = list(traces.listed(source, own))
            self.each(
                f"traces of {name}",
                [self._trace_item(source, target, identifier) for identifier in trace_ids],
            )
            self._copied(source, name, map(traces.location, trace_ids))
        if "evaluation" in parts and experiment.lifecycle_stage == ACTIVE:
            judges = [
                self._scorer_item(source, target, judge, own, number)
                for judge in scorers.names(source, own)
                if self._stands_alone(source, own, judge)
            ]
            self.each(f"scorers of {name}", judges)

    def _stands_alone(self, source: SourceReader, experiment_id: str, name: str) -> bool:
        """Returns whether a scorer needs no endpoint of the AI gateway. Endpoints are not exported,
        so other scorers are skipped with a message."""
        content = scorers.read(source, experiment_id, name, experiment_id)
        asks = any(
            _GATEWAY in version["serialized_scorer"] for version in content["versions"].values()
        )
        if asks:
            self._progress.end()
            print(f"scorer {name!r} asks an endpoint of the gateway: not exported", file=sys.stderr)
        return not asks

    def _shared(self, server: Server) -> None:
        """Exports what does not belong to exactly one experiment: registered models and
        datasets."""
        if "models" in self._options.parts:
            names = registry.names(server)
            self.each("models", [self._registered_model_item(server, name) for name in names])
        if "evaluation" in self._options.parts:
            listed = datasets.listed(server) or []
            self.each("datasets", [self._dataset_item(server, dataset) for dataset in listed])

    def _run_item(self, source: SourceReader, target: SourceReader, run_id: str) -> TransferItem:
        def write(_want: Content, _have: Content | None) -> None:
            read = source.run(run_id)
            history = {key: source.history(run_id, key) for key in read.metrics}
            run_rows.put_run(self._store, read, history)

        return TransferItem(
            "run",
            run_id,
            lambda: runs.read(source, run_id),
            lambda: _if_there(lambda: runs.read(target, run_id)),
            write,
            outline=lambda: runs.outline(source.run(run_id)),
            exists=lambda: self._store.has("runs", run_uuid=run_id),
        )

    def _logged_model_item(
        self, model: LoggedModel, there: Callable[[str], Content | None]
    ) -> TransferItem:
        return TransferItem(
            "logged model",
            model.model_id,
            lambda: logged_models.content(model),
            lambda: there(model.model_id),
            lambda _want, _have: model_rows.put_logged_model(self._store, model),
            exists=lambda: self._store.has("logged_models", model_id=model.model_id),
        )

    def _trace_item(self, source: SourceReader, target: SourceReader, trace: Any) -> TransferItem:
        trace_id = trace.trace_id

        def have() -> Content | None:
            info = _if_readable(lambda: _trace_info(self._stock, trace_id))
            if info is None:
                return None
            read = traces.entity(target, info)
            return traces.content_of(read, _spans(self._stock, read))

        def write(_want: Content, _have: Content | None) -> None:
            info = _trace_info(source.server, trace_id)
            spans = _spans(source.server, trace)
            trace_rows.put_trace(self._store, trace, info, spans)

        return TransferItem(
            "trace",
            trace_id,
            lambda: traces.content_of(trace, _spans(source.server, trace)),
            have,
            write,
            outline=lambda: traces.content_of(trace, []),
            exists=lambda: self._store.has("trace_info", request_id=trace_id),
        )

    def _registered_model_item(self, server: Server, name: str) -> TransferItem:
        return TransferItem(
            "registered model",
            name,
            registry.item(server, name).want,
            lambda: _if_there(registry.item(self._stock, name).want),
            lambda want, _have: model_rows.put_registered_model(self._store, name, want),
        )

    def _dataset_item(self, server: Server, fields: Json) -> TransferItem:
        dataset_id = fields["dataset_id"]

        def have() -> Content | None:
            there = _if_there(lambda: self._stock.get(f"api/3.0/mlflow/datasets/{dataset_id}"))
            return (
                None if there is None else datasets.item(self._stock, there["dataset"], str).want()
            )

        return TransferItem(
            "evaluation dataset",
            dataset_id,
            datasets.item(server, fields, self._number_of).want,
            have,
            lambda want, _have: evaluation_rows.put_dataset(self._store, dataset_id, want),
        )

    def _scorer_item(
        self, source: SourceReader, target: SourceReader, name: str, own: str, number: str
    ) -> TransferItem:
        def have() -> Content | None:
            if name not in scorers.names(target, number):
                return None
            return scorers.read(target, number, name, number)

        return TransferItem(
            "scorer",
            f"{number}/{name}",
            lambda: scorers.read(source, own, name, number),
            have,
            lambda want, _have: evaluation_rows.put_scorer(self._store, int(number), name, want),
        )

    def _copied(self, source: SourceReader, name: str, locations: Any) -> None:
        if "artifacts" not in self._options.parts:
            return
        items = []
        for location in filter(None, locations):
            path = proxy_path(location)
            if path is None:
                self._elsewhere.add(location)
            elif path not in self._seen:
                self._seen.add(path)
                items.append(files.item(source.server, self._stock, path, self._options.files))
        self.each(f"files of {name}", items)


def _active(experiment: Experiment) -> Content:
    fields = experiment._asdict()
    del fields["lifecycle_stage"], fields["last_update_time"], fields["workspace"]
    return fields


def _if_there(read: Callable[[], Any]) -> Any:
    """Returns the result of ``read``; None if the server answers that the entity does not exist."""
    try:
        return read()
    except SourceFailed as failed:
        if failed.absent:
            return None
        raise


def _if_readable(read: Callable[[], Any]) -> Any:
    """Like :func:`_if_there`, but also returns None if the server answers 500: MLflow's server does
    so for an entity that an interrupted export has written only partly."""
    try:
        return _if_there(read)
    except SourceFailed as failed:
        if failed.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            return None
        raise


def _spans(server: Server, trace: Trace) -> list[Json]:
    """Returns the spans of a trace, each with its kind. MLflow's server reads a span without a kind
    as internal, and shows that since 3.18."""
    return [{"kind": _KIND, **span} for span in traces.spans_of(server, trace)]


def _trace_info(server: Server, trace_id: str) -> Json:
    info: Json = server.get(f"api/3.0/mlflow/traces/{trace_id}")["trace"]["trace_info"]
    return info


def _logged_model(target: SourceReader, model_id: str) -> Content | None:
    fields = _if_there(lambda: target.server.get(f"api/2.0/mlflow/logged-models/{model_id}"))
    return None if fields is None else logged_models.content(target.logged_model(fields["model"]))
