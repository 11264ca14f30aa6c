"""PynamoDB without botocore's clients, and both as they are for whoever asks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

HEAVY = ("botocore.client", "botocore.session", "botocore.httpsession", "urllib3")


def _run(code: str) -> str:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(
        command, env=variables, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@pytest.mark.parametrize("module", ["runs.app", "experiments.app", "traces.app", "indexer.app"])
def test_no_function_starts_with_botocores_clients(module: str) -> None:
    loaded = _run(f"""
        import os
        os.environ["AWS_LAMBDA_RUNTIME_API"] = "127.0.0.1:9001"
        os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
        os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "x"
        import sys, {module}
        from mlcore.db.client import client
        client()
        print(*sorted(sys.modules))
    """).split()
    assert "mlcore.db.table" in loaded
    assert not set(HEAVY) & set(loaded)


@pytest.mark.parametrize("first", ["import mlcore.models.runs", "import botocore.session"])
def test_afterwards_botocore_and_pynamodb_are_whole(first: str) -> None:
    run = _run(f"""
        {first}
        import mlcore.models.runs
        import botocore.client, botocore.config, botocore.session
        from pynamodb.connection import Connection
        session = botocore.session.get_session()
        made = session.create_client("dynamodb", "us-east-1")
        own = Connection("us-east-1").client
        print(isinstance(made, botocore.client.BaseClient), type(own).__name__)
        print(botocore.client.ClientError is botocore.exceptions.ClientError)
    """)
    assert run.split() == ["True", "DynamoDB", "True"]
