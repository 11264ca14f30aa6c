"""What users do by the id of an experiment, where clients and the protocol take it for a number.

    python ids_script.py TRACKING_URI NAME

The server must be new, so that its first experiment is 1. Prints ``ok <client version>``; any wrong
answer ends it with an AssertionError.
"""

from __future__ import annotations

import sys
import threading
import warnings

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.genai import datasets
from mlflow.genai.scorers import Guidelines, ScorerSamplingConfig, get_scorer, list_scorers

warnings.simplefilter("ignore", FutureWarning)
EXPERIMENTS = 11
"""Some ids have two digits."""
HALF = ScorerSamplingConfig(sample_rate=0.5)


def refused(call, *arguments, **more) -> str:
    try:
        call(*arguments, **more)
    except MlflowException as error:
        return error.message
    raise AssertionError(f"{call} was not refused")


def numbers(name: str) -> list[str]:
    made = [mlflow.create_experiment(f"{name} {n}") for n in range(EXPERIMENTS)]
    assert made == [str(n) for n in range(1, EXPERIMENTS + 1)], made
    listed = mlflow.search_experiments(
        filter_string=f"name LIKE '{name} %'", order_by=["experiment_id DESC"], max_results=4
    )
    assert [experiment.experiment_id for experiment in listed] == made[:-5:-1], listed
    ids = ", ".join(f"'{experiment_id}'" for experiment_id in made[:3])
    listed = mlflow.search_experiments(filter_string=f"experiment_id IN ({ids})")
    assert {experiment.experiment_id for experiment in listed} == set(made[:3]), listed
    return made


def prompts(name: str, made: list[str]) -> None:
    for number in (0, EXPERIMENTS - 1):
        mlflow.set_experiment(experiment_id=made[number])
        mlflow.genai.register_prompt(f"{name}-{number}", "Say {{what}}")
    for thread in threading.enumerate():
        if thread.name.startswith("link_prompt_to_experiment"):
            thread.join()
    matches = mlflow.genai.search_prompts(filter_string=f"experiment_id = '{made[-1]}'")
    assert [prompt.name for prompt in matches] == [f"{name}-{EXPERIMENTS - 1}"], matches


def scorers(made: list[str]) -> None:
    for experiment_id in ("0", made[-1]):
        rule = "The answer is kind."
        Guidelines(name="kind", guidelines=rule, model="openai:/gpt-4o").register(
            experiment_id=experiment_id
        )
    (listed,) = list_scorers(experiment_id=made[-1])
    # None of the calls says where: the scorer knows from the answer that it came with.
    scorer = get_scorer(name="kind", experiment_id=made[-1])
    for instance in (listed, scorer):
        assert not instance.stop().sample_rate
        for call in (instance.start, instance.update):
            assert "gateway" in refused(call, sampling_config=HALF)
    mlflow.genai.scorers.delete_scorer(name="kind", experiment_id=made[-1], version="all")
    for instance in (listed, scorer):
        message = refused(instance.stop)
        assert f"not found for experiment {made[-1]}" in message, message
    assert len(list_scorers(experiment_id="0")) == 1


def evaluation_datasets(name: str, made: list[str]) -> None:
    for number in (0, EXPERIMENTS - 1):
        datasets.create_dataset(name=f"{name} {number}", experiment_id=[made[number]])
    for experiment_ids in (["1"], "1"):  # a text counts as the list of its letters
        matches = datasets.search_datasets(experiment_ids=experiment_ids)
        assert [dataset.name for dataset in matches] == [f"{name} 0"], matches


def main(uri: str, name: str) -> None:
    mlflow.set_tracking_uri(uri)
    made = numbers(name)
    prompts(name, made)
    scorers(made)
    evaluation_datasets(name, made)
    sys.stdout.write(f"ok {mlflow.__version__}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
