"""``import`` and ``compare`` of ``python -m local.admin`` for a Kubeflow model registry: which of
its entities are read, and in which order. Otherwise as for an MLflow server (:mod:`.command`)."""

from __future__ import annotations

from operate.transfer.command import Transfer, TransferOptions
from operate.transfer.kubeflow_models import Models
from operate.transfer.kubeflow_reader import Registry
from operate.transfer.kubeflow_runs import Experiments
from operate.transfer.mlflow_client import SourceFailed


def run(options: TransferOptions) -> int:
    """Runs an import from a Kubeflow model registry, or a comparison with it. Returns 0 if the
    table then has every chosen part of the registry's data, 1 if an entity differs or failed, or if
    the registry cannot be read."""
    return _RegistryTransfer(options._replace(journal=None)).run()


class _RegistryTransfer(Transfer):
    """Transfers a Kubeflow registry. It keeps no journal, because entities are found in the table
    by their names."""

    def everything(self) -> None:
        registry = Registry(self.server)
        if "runs" in self.options.parts:
            self._experiments_of(registry)
        if "models" in self.options.parts and not self.options.experiments:
            brought = Models(registry)
            self.each("models", list(brought.models()))
            self.each("serving environments", list(brought.environments()))
            self.each("artifacts", list(brought.standalone()))

    def _experiments_of(self, registry: Registry) -> None:
        wanted = set(self.options.experiments)
        brought = Experiments(registry)
        experiments = [each for each in brought.listed() if not wanted or each.name in wanted]
        if missing := wanted - {each.name for each in experiments}:
            raise SourceFailed(404, f"The server has no experiment {sorted(missing)[0]!r}.")
        for each in experiments:
            self.each(each.name, [brought.item(each, last=False)])
            self.each(f"runs of {each.name}", list(brought.runs(each)))
            self.each(each.name, [brought.item(each, last=True)])
