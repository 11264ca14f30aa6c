"""Stories of registered models and versions: names, numbers, stages, aliases, sources, prompts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.differential.calls import experiment, pairs, run
from tests.differential.calls import name as fresh
from tests.differential.pair import Pair
from tests.differential.registry_requests import (
    MODELS,
    VERSIONS,
    get_model,
    latest,
    model,
    move,
    version,
)
from tests.differential.rest import Call, Ref, delete, get, patch, post

pytestmark = pytest.mark.e2e

RESOLVED = ("file:///etc/passwd", "relative/path", "dummy-source")
"""Of a known run, MLflow's refusal shows where they are on its disk."""
PROMPT = {"mlflow.prompt.is_prompt": "true"}


def prompt(name: str, text: str = "Hi {{name}}") -> Call:
    tags = pairs(**PROMPT, **{"mlflow.prompt.text": text, "_mlflow_prompt_type": "text"})
    return version(name, "dummy-source", tags=tags, description="first")


def get_version(name: str, number: Any) -> Call:
    return get(f"{VERSIONS}/get", name=name, version=number)


def alias(name: str, text: str, number: Any) -> Call:
    return post(f"{MODELS}/alias", {"name": name, "alias": text, "version": number})


def by_alias(name: str, text: str) -> Call:
    return get(f"{MODELS}/alias", name=name, alias=text)


def test_models(both: Pair) -> None:
    first, second = fresh(), fresh()
    both.send_all(
        [
            model(first, tags=pairs(a="1", b="2"), description="of the first"),
            model(first),
            model(first, tags=pairs(**PROMPT)),
            model(second),
            get_model(first),
            get_model(fresh()),
            patch(f"{MODELS}/update", {"name": first, "description": "new"}),
            patch(f"{MODELS}/update", {"name": first}),
            patch(f"{MODELS}/update", {"name": fresh(), "description": "x"}),
            post(f"{MODELS}/set-tag", {"name": first, "key": "c", "value": "3"}),
            post(f"{MODELS}/set-tag", {"name": first, "key": "a"}),
            post(f"{MODELS}/set-tag", {"name": fresh(), "key": "a", "value": "x"}),
            post(f"{MODELS}/set-tag", {"name": first, "key": "/a", "value": "x"}),
            post(f"{MODELS}/set-tag", {"name": first, "key": "k" * 251, "value": "x"}),
            post(f"{MODELS}/set-tag", {"name": first, "key": "k", "value": "x" * 100_001}),
            post(f"{MODELS}/set-tag", {"name": first, "key": "k" * 250, "value": "x" * 100_000}),
            delete(f"{MODELS}/delete-tag", {"name": first, "key": "k" * 250}),
            delete(f"{MODELS}/delete-tag", {"name": first, "key": "b"}),
            delete(f"{MODELS}/delete-tag", {"name": first, "key": "b"}),
            delete(f"{MODELS}/delete-tag", {"name": fresh(), "key": "b"}),
            get_model(first),
            post(f"{MODELS}/rename", {"name": first, "new_name": second}),
            post(f"{MODELS}/rename", {"name": first, "new_name": first}),
            version(first),
            version(first),
            alias(first, "prod", "1"),
            post(f"{MODELS}/rename", {"name": first, "new_name": f"{first} new"}),
            get_model(first),
            get_model(f"{first} new"),
            get_version(f"{first} new", 1),
            get_version(first, 1),
            by_alias(f"{first} new", "prod"),
            post(f"{MODELS}/rename", {"name": first, "new_name": fresh()}),
            model(first),
            get_model(first),
            version(first, description="of the other"),
            get_version(first, 1),
            get_version(first, 2),
            delete(f"{MODELS}/delete", {"name": f"{first} new"}),
            delete(f"{MODELS}/delete", {"name": f"{first} new"}),
            get_version(f"{first} new", 1),
            model(f"{first} new"),
            get_model(f"{first} new"),
            version(f"{first} new"),
            get_version(first, 1),
        ]
    )


@pytest.mark.parametrize(
    "name", ["", " ", "a/b", "a:b", ".", "..", "../a", "a#b $23 ☃", "x" * 250, "/", "a//b", "a\0b"]
)
def test_names(both: Pair, name: str) -> None:
    unique = f"{name}{fresh()}" if name.strip() and name not in (".", "..", "/") else name
    both.send_all(
        [
            model(unique),
            get_model(unique),
            version(unique),
            get_version(unique, 1),
            alias(unique, "x", "1"),
            by_alias(unique, "x"),
            post(f"{MODELS}/rename", {"name": unique, "new_name": name}),
            delete(f"{MODELS}/delete", {"name": unique}),
        ]
    )


def test_versions(both: Pair) -> None:
    name = fresh()
    both.send_all(
        [
            version(name),
            model(name),
            version(name, tags=pairs(a="1"), description="d", run_link="http://link"),
            version(name, run_id="some run"),
            version(name, description=""),
            get_model(name),
            *(get_version(name, number) for number in ("1", "2", "4", "0", "-1", "x", "1.0", " 2")),
            get_version(name, "9" * 30),
            get(f"{VERSIONS}/get-download-uri", name=name, version="1"),
            get(f"{VERSIONS}/get-download-uri", name=name, version="9"),
            get(f"{VERSIONS}/get-download-uri", name=name),
            get(f"{VERSIONS}/get-download-uri"),
            patch(f"{VERSIONS}/update", {"name": name, "version": "1", "description": "new"}),
            patch(f"{VERSIONS}/update", {"name": name, "version": "1", "description": ""}),
            patch(f"{VERSIONS}/update", {"name": name, "version": "1"}),
            patch(f"{VERSIONS}/update", {"name": name, "version": "8"}),
            post(f"{VERSIONS}/set-tag", {"name": name, "version": "1", "key": "k", "value": "v"}),
            post(f"{VERSIONS}/set-tag", {"name": name, "version": "9", "key": "k", "value": "v"}),
            post(f"{VERSIONS}/set-tag", {"name": name, "version": "x", "key": "k", "value": "v"}),
            post(f"{VERSIONS}/set-tag", {"name": name, "version": "1", "key": "k"}),
            delete(f"{VERSIONS}/delete-tag", {"name": name, "version": "1", "key": "a"}),
            delete(f"{VERSIONS}/delete-tag", {"name": name, "version": "1", "key": "a"}),
            delete(f"{VERSIONS}/delete-tag", {"name": name, "version": "9", "key": "a"}),
            get_version(name, 1),
            alias(name, "a", "3"),
            alias(name, "b", "3"),
            delete(f"{VERSIONS}/delete", {"name": name, "version": "3"}),
            delete(f"{VERSIONS}/delete", {"name": name, "version": "3"}),
            delete(f"{VERSIONS}/delete", {"name": name, "version": "x"}),
            get_version(name, 3),
            by_alias(name, "a"),
            alias(name, "a", "3"),
            move(name, "3", "Staging"),
            post(f"{VERSIONS}/set-tag", {"name": name, "version": "3", "key": "k", "value": "v"}),
            get_model(name),
            version(name),
            get_model(name),
        ]
    )


def test_stages(both: Pair) -> None:
    name = fresh()
    both.send_all(
        [
            model(name),
            latest(name),
            *(version(name) for _ in range(6)),
            latest(name),
            move(name, "1", "production"),
            move(name, "2", "PRODUCTION"),
            get_model(name),
            move(name, "3", "Production", archive=True),
            get_model(name),
            latest(name),
            latest(name, "None", "archived"),
            latest(name, "Production"),
            latest(name, "Staging"),
            latest(name, "bogus"),
            latest(fresh()),
            get(f"{MODELS}/get-latest-versions", name=name),
            get(f"{MODELS}/get-latest-versions", name=name, stages=["Archived", "None"]),
            move(name, "4", "Archived", archive=True),
            move(name, "4", "bogus"),
            move(name, "9", "Staging"),
            move(name, "x", "Staging"),
            move(name, "3", "Production", archive=True),
            move(name, "3", "None"),
            move(name, "6", "Staging"),
            delete(f"{VERSIONS}/delete", {"name": name, "version": "6"}),
            get_model(name),
            move(name, "5", "Archived"),
            delete(f"{VERSIONS}/delete", {"name": name, "version": "5"}),
            get_model(name),
            by_alias(name, "Latest"),
            post(f"{VERSIONS}/transition-stage", {"name": name, "version": "1", "stage": "None"}),
            post(f"{VERSIONS}/transition-stage", {"name": name, "version": "1"}),
        ]
    )


def test_aliases(both: Pair) -> None:
    name = fresh()
    both.send_all(
        [
            alias(name, "a", "1"),
            by_alias(name, "a"),
            model(name),
            by_alias(name, "latest"),
            alias(name, "a", "1"),
            version(name),
            version(name),
            *(
                alias(name, text, "1")
                for text in ("a", "b", "latest", "LATEST", "v1", "V22", "vv1", "a b", "a.b", "ä-_")
            ),
            alias(name, "a" * 255, "2"),
            alias(name, "a" * 256, "2"),
            alias(name, "a", "2"),
            alias(name, "a", "7"),
            alias(name, "a", "x"),
            *(by_alias(name, text) for text in ("a", "b", "A", "latest", "v1", "a b", "missing")),
            get_model(name),
            get_version(name, 1),
            delete(f"{MODELS}/alias", {"name": name, "alias": "a"}),
            delete(f"{MODELS}/alias", {"name": name, "alias": "a"}),
            delete(f"{MODELS}/alias", {"name": name, "alias": "a b"}),
            delete(f"{MODELS}/alias", {"name": fresh(), "alias": "a"}),
            get_model(name),
            latest(name),
        ]
    )


def test_sources(both: Pair) -> None:
    name, other = fresh(), fresh()
    inside = "mlflow-artifacts:/{{experiment}}/{{run}}/artifacts"
    both.send_all(
        [
            model(name),
            model(other),
            experiment(),
            run(),
            *(
                version(name, source, **more)
                for more in ({}, {"run_id": Ref("run")}, {"run_id": "unknown"})
                for source in (
                    *(() if "run_id" in more else RESOLVED),
                    "/etc/passwd",
                    "file://host/x",
                    "s3://bucket/../x",
                    "s3://bucket/%2e%2e/x",
                    "s3://bucket",
                    "s3://bucket/a//b/",
                    "http://host/x",
                    "https://host/api/2.0/mlflow-artifacts/artifacts/x",
                    "ftp://host/x",
                    "dbfs:/a/b",
                    "runs:/unknown/model",
                    "runs://host/unknown/model",
                    "runs:/",
                    "models:/",
                    "models:/a/b/c",
                    "models://host/a/1",
                    "models:/m-unknown",
                    f"models:/{other}/1",
                    f"models:/{other}@x",
                    f"models:/{fresh()}/1",
                    "mlflow-artifacts:/9999999/unknown/artifacts/model",
                    "mlflow-artifacts://host/a",
                )
            ),
            version(other, "s3://b/x", run_id="r"),
            version(name, f"models:/{other}/1"),
            version(name, f"models:/{other}/latest"),
            version(name, f"models:/{other}/None"),
            version(name, f"models:/{other}/Staging"),
            version(name, f"models:/{other}/bogus"),
            version(name, f"models:/{other}/1", run_id="r"),
            version(name, f"models:/{other}/1", run_id="wrong"),
            version(name, f"models:/{other}/1", model_id="m-1"),
            version(name, f"models:/{other}/2"),
            *(
                version(name, source, model_id="m-unknown")
                for source in (
                    "models:/m-other",
                    "models:/m-unknown",
                    "runs:/unknown/model",
                    "s3://bucket/../x",
                    "s3://bucket/x",
                )
            ),
            alias(other, "x", "1"),
            version(name, f"models:/{other}@x"),
            get(f"{VERSIONS}/get-download-uri", name=name, version="4"),
            get_model(name),
        ]
    )
    for path, run_id in (("model", Ref("run")), ("", Ref("run")), ("model", "unknown")):
        raw = f'{{"name": "{name}", "source": "{inside}/{path}", "run_id": "%s"}}'
        text = raw % ("{{run}}" if isinstance(run_id, Ref) else run_id)
        both.send(post(f"{VERSIONS}/create", raw=text.encode()))
    raw = f'{{"name": "{name}", "source": "runs:/{{{{run}}}}/model", "run_id": "{{{{run}}}}"}}'
    both.send(post(f"{VERSIONS}/create", raw=raw.encode()))


def test_prompts(both: Pair) -> None:
    name, plain = fresh(), fresh()
    hidden = f"name = '{name}'"
    explicit = f"{hidden} AND tags.`mlflow.prompt.is_prompt` = 'true'"
    both.send_all(
        [
            prompt(name),
            model(name, tags=pairs(**PROMPT)),
            model(name, tags=pairs(**PROMPT)),
            model(name),
            prompt(name),
            prompt(name, "Bye"),
            version(name, "s3://a/b", tags=pairs(**PROMPT)),
            prompt(name, "x" * 100_001),
            version(name, f"models:/{name}/1"),
            model(plain),
            version(plain),
            *(
                get(f"{kind}/search", filter=text)
                for kind in (MODELS, VERSIONS)
                for text in (
                    hidden,
                    explicit,
                    f"{hidden} AND tags.`mlflow.prompt.is_prompt` != 'false'",
                    f"{hidden} AND tags.`mlflow.prompt.is_prompt` = 'TRUE'",
                    f"{hidden} AND tags.`mlflow.prompt.is_prompt` = 'false'",
                    f"name = '{plain}' AND tags.`mlflow.prompt.is_prompt` != 'true'",
                    f"name = '{plain}' AND tags.`mlflow.prompt.is_prompt` = 'true'",
                    f"name IN ('{plain}', '{name}')",
                    f"name LIKE '{plain}%'",
                )
            ),
            version(plain, tags=pairs(**PROMPT), source="prompt-template"),
            get(f"{VERSIONS}/search", filter=f"name = '{plain}'"),
            delete(f"{VERSIONS}/delete", {"name": plain, "version": "2"}),
            get(f"{VERSIONS}/search", filter=f"name = '{plain}'"),
            alias(name, "prod", "1"),
            by_alias(name, "prod"),
            get_model(name),
            delete(f"{MODELS}/delete", {"name": name}),
            model(name),
        ]
    )


def test_versions_of_a_logged_model(both: Pair) -> None:
    name = fresh()

    def of_model(source: str, model_id: str = "{{model}}", **more: str) -> Call:
        parts = {"name": name, "source": source, "model_id": model_id, **more}
        return post(f"{VERSIONS}/create", raw=json.dumps(parts).encode())

    root = "mlflow-artifacts:/{{experiment}}"
    both.send_all(
        [
            model(name),
            experiment(),
            run(),
            post(
                "logged-models",
                {"experiment_id": Ref("experiment"), "name": "lm", "source_run_id": Ref("run")},
                saves={"model": "model.info.model_id"},
            ),
            of_model("models:/{{model}}"),
            of_model("models:/{{model}}", run_id="another"),
            of_model("models:/m-other"),
            of_model(f"{root}/models/{{{{model}}}}/artifacts"),
            of_model(f"{root}/models/{{{{model}}}}/artifacts/part"),
            of_model(f"{root}/{{{{run}}}}/artifacts"),
            of_model("runs:/{{run}}/model"),
            of_model("s3://bucket/model"),
            of_model("s3://bucket/model", "m-unknown"),
            of_model("/etc/passwd"),
            version(name, f"models:/{name}/1"),
            version(name, f"models:/{name}/1", model_id="m-wrong"),
            *(
                get(f"{VERSIONS}/get-download-uri", name=name, version=str(number))
                for number in range(1, 6)
            ),
            get_model(name),
            get("logged-models/{{model}}"),
        ]
    )
