"""What is uploaded for CloudFormation, Terraform, the CDK and the Serverless Application
Repository."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from operate import package
from operate.release import versions

TEMPLATE = "Transform: AWS::Serverless-2016-10-31\nMetadata:\n  cfn-lint: {a: 1}\nResources: {}\n"


def test_the_application_is_one_that_the_repository_takes() -> None:
    """Rules of AWS, "AWS SAM template Metadata section properties"."""
    [version] = set(versions().values())
    metadata = package.application(version)
    assert re.fullmatch(r"[a-zA-Z0-9-]{1,140}", metadata["Name"])
    assert len(metadata["Description"]) <= 256
    assert re.fullmatch(r"[a-z0-9](([a-z0-9]|-(?!-))*[a-z0-9])?", metadata["Author"])
    assert len(metadata["Author"]) <= 127
    assert len(metadata["Labels"]) <= 10
    assert all(re.fullmatch(r"[a-zA-Z0-9+\-_:/@]{1,127}", label) for label in metadata["Labels"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", metadata["SemanticVersion"])


def test_a_template_is_described_once_and_keeps_the_rest() -> None:
    metadata = package.application("1.2.3")
    described = package.described(TEMPLATE, metadata)
    read = yaml.safe_load(described)
    assert read["Metadata"].pop(package.SECTION) == metadata
    assert read == yaml.safe_load(TEMPLATE)
    for wrong in (described, "Resources: {}\n"):
        with pytest.raises(package.NotPackaged):
            package.described(wrong, metadata)


def test_the_link_names_the_template_in_its_region() -> None:
    url = "https://b.s3.eu-west-1.amazonaws.com/mlflow-serverless/1.2.3/template.yaml"
    link = urlsplit(package.launch_link(url, "eu-west-1"))
    assert link.netloc == "eu-west-1.console.aws.amazon.com"
    assert parse_qs(link.query) == {"region": ["eu-west-1"]}
    route, _, query = link.fragment.partition("?")
    assert route == "/stacks/create/review"
    assert parse_qs(query) == {"templateURL": [url], "stackName": ["mlflow"]}


def test_nothing_is_uploaded_without_a_region_or_a_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    assert package.main(["bucket"]) == 1
    assert "AWS_DEFAULT_REGION" in capsys.readouterr().err
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert package.main(["bucket", "--build", "/nonexistent", "--folder", "/tmp"]) == 1
    assert "make build" in capsys.readouterr().err
