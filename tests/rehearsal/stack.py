"""Builds the product and deploys it as a user would; owns the commands, and the stack's outputs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import boto3

from tests import ministack
from tests.engines import REGION, ROOT
from tests.servers import ADMIN, REMEMBERED, environment

SAM = ROOT / ".tools" / "sam" / "bin" / "sam"
_SAM = (str(SAM.with_name("python")), str(Path(__file__).with_name("sam.py")))
NAME = "mlflow-rehearsal"
PARAMETERS = {
    "Authentication": "basic",
    "Stage": "rehearsal",
    "DeletionProtection": "false",
    "MetricsDashboard": "true",
    # Receivers of the tests listen on this machine.
    "WebhookAllowedSchemes": "http,https",
    "WebhookAllowPrivateAddresses": "true",
}


NOT_IN_THE_EMULATOR = ("logged-model-search", "sql")
"""Steps of the checkup: a Query of a local index answers keys alone there, where AWS fetches the
items; and the engine of SQL is built for Lambda's processors, which are not this machine's."""


UPLOADS = "rehearsal-uploads"
"""A bucket for templates and layers that the SAM CLI did not send."""
LOGIN = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")


def credentials(region: str = REGION) -> dict[str, str]:
    """The environment that AWS's tools read."""
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "0.3",
    }


class NoInterpreter(Exception):
    """There is no Python 3.13 on this machine; the message says what to do."""


def interpreter() -> str:
    """Python 3.13, after everything that a deployment needs was installed."""
    completed = subprocess.run(
        ["make", "--silent", "--no-print-directory", "deploy-tools"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env=environment(),
    )
    if completed.returncode:
        raise NoInterpreter(completed.stderr.strip())
    return completed.stdout.splitlines()[-1]


class Stack:
    """A deployed stack. ``build`` is the folder of what was deployed last."""

    def __init__(self, endpoint: str, log: Path, name: str = NAME, region: str = REGION) -> None:
        self.endpoint = endpoint
        self.log = log
        self.name = name
        self.region = region
        self.environment = environment(
            AWS_ENDPOINT_URL=endpoint, **REMEMBERED, **credentials(region)
        )

    def deploy(self, build: Path, **parameters: str) -> None:
        self.build = build
        given = {**PARAMETERS, **parameters}
        self._sam(
            *("deploy", "--template-file", str(build / "template.yaml")),
            *("--stack-name", self.name),
            *("--resolve-s3", "--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"),
            *("--no-fail-on-empty-changeset", "--no-confirm-changeset", "--region", self.region),
            *("--parameter-overrides", *(f"{name}={value}" for name, value in given.items())),
        )

    def begin(self, build: Path) -> None:
        """The first deployment, and the administrator."""
        self.deploy(build)
        self.allow_what_the_emulator_asks_for_besides()
        self.turn_on_what_the_emulator_leaves_out()
        made = self.admin("create-admin", "--name", ADMIN[0], text=f"{ADMIN[1]}\n")
        assert made.returncode == 0, made.stderr

    def allow_what_the_emulator_asks_for_besides(self) -> None:
        """It speaks plain HTTP, which the buckets refuse, and it knows an action for batches of
        messages where AWS asks for ``sqs:SendMessage``. Both are as they should be in AWS."""
        for bucket in ("ArtifactBucketName", "SystemTablesBucketName", "UiBucketName"):
            self.client("s3").delete_bucket_policy(Bucket=self.outputs[bucket])
        role = self.client("cloudformation").describe_stack_resource(
            StackName=self.name, LogicalResourceId="IndexerRole"
        )["StackResourceDetail"]["PhysicalResourceId"]
        statement = {"Effect": "Allow", "Action": "sqs:SendMessageBatch", "Resource": "*"}
        self.client("iam").put_role_policy(
            RoleName=role,
            PolicyName="batches",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
        )
        self.allow_what_a_context_allows()

    def allow_what_a_context_allows(self) -> None:
        """The emulator checks conditions but knows no ``kms:EncryptionContextKeys``, so it refuses
        what the key allows in AWS. Roles get the same actions of the same key without it; that
        the context is asked for is tested with the template."""
        iam, formation = self.client("iam"), self.client("cloudformation")
        pages = formation.get_paginator("list_stack_resources").paginate(StackName=self.name)
        for resource in (summary for page in pages for summary in page["StackResourceSummaries"]):
            if resource["ResourceType"] != "AWS::IAM::Role":
                continue
            role = resource["PhysicalResourceId"]
            allowed = [
                {key: value for key, value in statement.items() if key != "Condition"}
                for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
                for statement in iam.get_role_policy(RoleName=role, PolicyName=name)[
                    "PolicyDocument"
                ]["Statement"]
                if "kms:EncryptionContextKeys" in json.dumps(statement.get("Condition", {}))
            ]
            if allowed:
                iam.put_role_policy(
                    RoleName=role,
                    PolicyName="contexts",
                    PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": allowed}),
                )

    def turn_on_what_the_emulator_leaves_out(self) -> None:
        """Its CloudFormation ignores the table's TTL and point-in-time recovery; its DynamoDB has
        both."""
        service = self.client("dynamodb")
        service.update_time_to_live(
            TableName=self.table,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"},
        )
        service.update_continuous_backups(
            TableName=self.table,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )

    def template(self) -> str:
        """The template that was deployed last, as it was sent."""
        sent: str = self.client("cloudformation").get_template(
            StackName=self.name, TemplateStage="Original"
        )["TemplateBody"]
        return sent

    def upload(self, file: Path) -> str:
        """The address of a copy of the file in a bucket, as CloudFormation takes it."""
        files = self.client("s3")
        files.create_bucket(Bucket=UPLOADS)
        files.upload_file(str(file), UPLOADS, file.name)
        return f"s3://{UPLOADS}/{file.name}"

    def change(self, template: str, parameters: Mapping[str, str]) -> dict[str, str]:
        """Updates the stack without the SAM CLI, which compresses all files anew. Returns the
        former values of the parameters."""
        formation, files = self.client("cloudformation"), self.client("s3")
        files.create_bucket(Bucket=UPLOADS)
        files.put_object(Bucket=UPLOADS, Key="template", Body=template.encode())
        [before] = formation.describe_stacks(StackName=self.name)["Stacks"]
        former = {
            parameter["ParameterKey"]: parameter["ParameterValue"]
            for parameter in before["Parameters"]
        }
        formation.update_stack(
            StackName=self.name,
            TemplateURL=f"{self.endpoint}/{UPLOADS}/template",
            Parameters=[
                {"ParameterKey": name, "ParameterValue": parameters[name]}
                if name in parameters
                else {"ParameterKey": name, "UsePreviousValue": True}
                for name in former
            ],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
        waiter = formation.get_waiter("stack_update_complete")
        waiter.wait(StackName=self.name, WaiterConfig={"Delay": 1, "MaxAttempts": 200})
        return {name: former[name] for name in parameters}

    def delete(self) -> None:
        self._sam("delete", "--stack-name", self.name, "--no-prompts", "--region", self.region)

    def _sam(self, *arguments: str) -> None:
        with self.log.open("ab") as output:
            done = subprocess.run(
                [*_SAM, *arguments],
                cwd=self.log.parent,  # no samconfig.toml there
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=300,
                check=False,
            )
        assert done.returncode == 0, self.log.read_text()[-6000:]

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    @cached_property
    def outputs(self) -> Mapping[str, str]:
        [stack] = self.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    @property
    def table(self) -> str:
        return self.outputs["TableName"]

    @cached_property
    def url(self) -> str:
        """The API's address by path: not every machine resolves names below localhost."""
        identity = self.outputs["ApiUrl"].removeprefix("http://").partition(".")[0]
        return f"{self.endpoint}/_aws/execute-api/{identity}/$default"

    def admin(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """``python -m local.admin`` on the stack's table."""
        table = {"AWS_ENDPOINT_URL_DYNAMODB": self.endpoint, "TABLE_NAME": self.table}
        return self._run("local.admin", *arguments, text=text, variables=table)

    def operate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """As :meth:`admin`, by an operator of the deployment, as docs/operations.md says."""
        named = {
            "TABLE_NAME": self.table,
            "SYSTEM_TABLES_BUCKET": self.outputs["SystemTablesBucketName"],
        }
        return self._run("local.admin", *arguments, variables=named)

    def doctor(self, url: str, report: Path, *without: str) -> dict[str, str]:
        """Runs the checkup of a server of this stack, which must be well, and returns the status
        of each step."""
        left_out = (*NOT_IN_THE_EMULATOR, *without)
        user = dict(zip(LOGIN, ADMIN, strict=True))
        done = self._run(
            *("local.admin", "doctor", "--url", url, "--stack", self.name, "--json", str(report)),
            *(part for name in left_out for part in ("--without", name)),
            seconds=850,
            variables=user,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert ADMIN[1] not in done.stdout + done.stderr + report.read_text()
        return {step["step"]: step["status"] for step in json.loads(report.read_text())["steps"]}

    def publish_ui(self) -> None:
        """Uploads the files of the web UI, as ``make publish-ui``."""
        done = self._run("operate.ui_bucket", self.name)
        assert done.returncode == 0, done.stderr

    def adopt(self, build: Path, stored: Mapping[str, str]) -> None:
        """Makes the stack of a table, buckets and a key that no other stack has."""
        options = {
            "--table": stored["Table"],
            "--bucket": stored["ArtifactBucket"],
            "--system-tables-bucket": stored["SystemTablesBucket"],
            "--key": stored["SecretsKey"],
            "--template": str(build / "template.yaml"),
        }
        done = self._run(
            *("operate.restore", "adopt", "--into", self.name),
            *(part for option in options.items() for part in option),
            *("--parameter", "DeletionProtection=false"),
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def versions(self, action: str, *arguments: str) -> str:
        """What ``python -m operate.versions`` prints."""
        done = self._run("operate.versions", action, self.name, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _run(
        self,
        module: str,
        *arguments: str,
        text: str = "",
        seconds: int = 300,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**self.environment, **(variables or {})},
            input=text,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def call(
        self,
        method: str,
        path: str,
        fields: dict[str, Any] | None = None,
        user: tuple[str, str] | str | None = ADMIN,
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, body (decoded where it is JSON) and headers. A user may be a token."""
        headers = {"Content-Type": "application/json"}
        if user is not None:
            headers["Authorization"] = f"Bearer {user}" if isinstance(user, str) else basic(user)
        content = None if fields is None else json.dumps(fields).encode()
        request = urllib.request.Request(
            self.url + path, method=method, data=content, headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, _decoded(answer.read()), dict(answer.headers)
        except HTTPError as error:
            with error:
                return error.code, _decoded(error.read()), dict(error.headers)

    def ask(self, method: str, path: str, **fields: Any) -> Any:
        status, body, _ = self.call(method, f"/api/2.0/mlflow/{path}", fields or None)
        assert status == 200, (path, status, body)
        return body


def basic(user: tuple[str, str]) -> str:
    return f"Basic {b64encode(':'.join(user).encode()).decode()}"


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode()


def build(python: str, folder: Path, source: Path = ROOT, template: Path | None = None) -> Path:
    """What `sam build` makes of a source, or of another template, in a folder of its own."""
    template = template or source / "template.yaml"
    done = subprocess.run(
        # SAM finds what it has cached only when it builds into the same folder again.
        [
            *(*_SAM, "build", "--build-dir", str(folder), "--base-dir", str(source)),
            *("--template-file", str(template)),
        ],
        cwd=source,
        env=environment(
            **credentials(),
            **REMEMBERED,
            PATH=f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}",
        ),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@contextlib.contextmanager
def deployed(folder: Path, built: Path) -> Iterator[Stack]:
    """What was built, on an emulator of AWS that asks each function's role what it may do.

    Raises:
        NoInterpreter: as :func:`interpreter`.
    """
    python = interpreter()
    with ministack.running(folder, python, AUTH="true") as endpoint:
        stack = Stack(endpoint, folder / "sam.log")
        stack.begin(built)
        yield stack
