"""Random writes of evaluation datasets, their records and jobs, and what the system tables should
say."""

from __future__ import annotations

import json
import random
from typing import Any

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.evaluation.jobs import Creator, Job
from mlcore.entities.workspaces import Workspace
from mlcore.repos.evaluation import datasets, jobs
from mlcore.repos.workspaces import workspaces
from tests.contract import stored_job
from tests.contract.conftest import Store
from tests.contract.evaluation_calls import new_dataset, sent, upsert

HOME, AWAY = "default", "team"
VALUES: tuple[Any, ...] = (
    "plain",
    "ünïcode 😀",
    'a,b\n"quoted"',
    7,
    -2.5,
    None,
    ["x", {"y": True}],
)

Dataset = dict[str, Any]


class DatasetsWorld:
    """Does random things with datasets and jobs, and remembers what they mean."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.rng = store, random.Random(seed)
        if AWAY not in workspaces.names():  # another world may have made it
            workspaces.create(Workspace(AWAY, None))
        self.datasets: dict[str, Dataset] = {}
        self.jobs: dict[str, Job] = {}

    def step(self) -> None:
        rng = self.rng
        acts = [self.upsert] * 5 + [self.tag, self.delete_records, self.assign]
        acts += [self.submit, self.change_job, self.change_job]
        acts += [self.move] if rng.random() < 0.4 else []
        acts += [self.delete] if rng.random() < 0.3 else []
        acts += [self.remove_job] if rng.random() < 0.3 else []
        if len(self.datasets) < 3 or rng.random() < 0.05:
            acts = [self.create]
        rng.choice(acts)()

    def _dataset(self) -> str | None:
        """Of those that the API reaches."""
        items = [key for key, about in self.datasets.items() if about["workspace"] == HOME]
        return self.rng.choice(items) if items else None

    def create(self) -> None:
        tags = {"mlflow.user": "ann", "t": "1"}
        made = new_dataset(tags=json.dumps(tags), experiment_ids=["7"])
        self.datasets[made] = {
            "workspace": HOME,
            "tags": tags,
            "experiments": ["7"],
            "records": {},
        }

    def upsert(self) -> None:
        dataset_id = self._dataset()
        if dataset_id is None:
            return
        records = []
        for number in self.rng.sample(range(6), self.rng.choice((1, 1, 4))):
            record = {"inputs": {"q": number}, "outputs": self.rng.choice(VALUES)}
            records.append(record)
            known = self.datasets[dataset_id]["records"].get(number)
            if record["outputs"] is None and known is not None:
                record["outputs"] = known
            self.datasets[dataset_id]["records"][number] = record["outputs"]
        assert upsert(dataset_id, *records).status == 200

    def delete_records(self) -> None:
        dataset_id = self._dataset()
        if dataset_id is None:
            return
        listed = json.loads(sent("GET", f"datasets/{dataset_id}/records")["records"])
        if listed:
            record = self.rng.choice(listed)
            body = {"dataset_record_ids": [record["dataset_record_id"]]}
            sent("DELETE", f"datasets/{dataset_id}/records", body)
            del self.datasets[dataset_id]["records"][record["inputs"]["q"]]

    def tag(self) -> None:
        dataset_id = self._dataset()
        if dataset_id is not None:
            key, value = f"t{self.rng.randrange(3)}", str(self.rng.choice(VALUES))
            body = {"tags": json.dumps({key: value})}
            sent("PATCH", f"datasets/{dataset_id}/tags", body)
            self.datasets[dataset_id]["tags"][key] = value

    def assign(self) -> None:
        dataset_id = self._dataset()
        if dataset_id is not None:
            experiment = self.store.api.new_experiment(f"e{self.rng.getrandbits(60)}")
            body = {"experiment_ids": [experiment]}
            sent("POST", f"datasets/{dataset_id}/add-experiments", body)
            if experiment not in self.datasets[dataset_id]["experiments"]:  # "7" may exist by now
                self.datasets[dataset_id]["experiments"].append(experiment)

    def move(self) -> None:
        """To another workspace, where the API does not reach it, or back."""
        if self.datasets:
            dataset_id = self.rng.choice(sorted(self.datasets))
            about = self.datasets[dataset_id]
            stored = datasets.find(about["workspace"], dataset_id)
            assert stored is not None
            about["workspace"] = AWAY if about["workspace"] == HOME else HOME
            datasets.move(stored, about["workspace"])

    def delete(self) -> None:
        dataset_id = self._dataset()
        if dataset_id is not None:
            sent("DELETE", f"datasets/{dataset_id}")
            del self.datasets[dataset_id]

    def submit(self) -> None:
        params = {"experiment_id": "7", "q": self.rng.choice(VALUES)}
        job = jobs.new(self.rng.choice((HOME, AWAY)), "invoke_scorer", params, 3, Creator("ann"))
        stored_job.store(job)
        self.jobs[job.job_id] = job

    def change_job(self) -> None:
        if self.jobs:
            job = self.jobs[self.rng.choice(sorted(self.jobs))]
            status = self.rng.choice(("RUNNING", "SUCCEEDED", "FAILED"))
            changed = job._replace(
                status=status,
                result=self.rng.choice(VALUES),
                error_message="no" if status == "FAILED" else None,
                completed=self.rng.randrange(4),
            )
            jobs.change(
                job.workspace, job.job_id, lambda stored: changed._replace(version=stored.version)
            )
            self.jobs[job.job_id] = changed

    def remove_job(self) -> None:
        """As a job that is withdrawn, or that has expired."""
        if self.jobs:
            job = self.jobs.pop(self.rng.choice(sorted(self.jobs)))
            table.delete(keys.job(job.workspace, job.job_id))

    # ------------------------------------------------------------ what the tables should say

    def dataset_rows(self) -> dict[tuple[str], dict[str, Any]]:
        return {
            (dataset_id,): {
                "workspace_id": about["workspace"],
                "name": "d",
                "created_by": "ann",
                "experiment_ids": about["experiments"],
                "tags": about["tags"],
            }
            for dataset_id, about in self.datasets.items()
        }

    def record_rows(self) -> dict[tuple[str, str], dict[str, Any]]:
        """By dataset and inputs."""
        return {
            (dataset_id, json.dumps({"q": number})): {
                "workspace_id": about["workspace"],
                "outputs": None if outputs is None else json.dumps(outputs, ensure_ascii=False),
            }
            for dataset_id, about in self.datasets.items()
            for number, outputs in about["records"].items()
        }

    def job_rows(self) -> dict[tuple[str], dict[str, Any]]:
        return {
            (job_id,): {
                "workspace_id": job.workspace,
                "job_name": "invoke_scorer",
                "status": job.status,
                "creator": "ann",
                "experiment_id": "7",
                "params": json.dumps(job.params, ensure_ascii=False),
                "result": None
                if job.result is None
                else json.dumps(job.result, ensure_ascii=False),
                "error_message": job.error_message,
                "completed": job.completed,
                "total": 3,
            }
            for job_id, job in self.jobs.items()
        }
