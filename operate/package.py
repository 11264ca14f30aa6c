"""``python -m operate.package BUCKET``: uploads the build, so that CloudFormation, Terraform, the
CDK or the Serverless Application Repository can deploy it by the URL of one template.

The template is written to ``dist/packaged.yaml`` and uploaded beside functions and layers. Lambda
reads them when a stack is created, so the bucket must be in the region of the stacks, and whoever
creates them must be able to read it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from operate.release import versions

ROOT: Final = Path(__file__).resolve().parents[1]
PRODUCT: Final = "mlflow-serverless"
SECTION: Final = "AWS::ServerlessRepo::Application"
_METADATA: Final = "\nMetadata:\n"


class NotPackaged(Exception):
    """Raised if the product's SAM build cannot be uploaded to S3; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Uploads the build to a bucket (``python -m operate.package``). Returns 0 if everything was
    uploaded, otherwise 1."""
    parser = argparse.ArgumentParser(prog="python -m operate.package", description=__doc__)
    parser.add_argument("bucket", help="bucket in the region of the stacks")
    parser.add_argument("--build", type=Path, default=ROOT / ".aws-sam/build")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist")
    parser.add_argument("--sam", default="sam", help="command of the SAM CLI (%(default)s)")
    given = parser.parse_args(arguments)
    try:
        session = boto3.Session()
        region = session.region_name or _fail("no region: set AWS_DEFAULT_REGION")
        version = next(iter(versions().values()))
        given.folder.mkdir(parents=True, exist_ok=True)
        packaged = given.folder / "packaged.yaml"
        prefix = f"{PRODUCT}/{version}"
        _upload_code(shlex.split(given.sam), given.build, packaged, given.bucket, prefix)
        s3 = session.client("s3")
        metadata = application(version)
        for field, name in (("LicenseUrl", "LICENSE"), ("ReadmeUrl", "README.md")):
            s3.upload_file(str(ROOT / name), given.bucket, f"{prefix}/{name}")
            metadata[field] = f"s3://{given.bucket}/{prefix}/{name}"
        packaged.write_text(described(packaged.read_text(), metadata))
        s3.upload_file(str(packaged), given.bucket, f"{prefix}/template.yaml")
    except (NotPackaged, OSError, BotoCoreError, ClientError) as error:
        print(f"operate.package: {error}", file=sys.stderr)
        return 1
    url = f"https://{given.bucket}.s3.{region}.amazonaws.com/{prefix}/template.yaml"
    print(f"template  {url}")
    print(f"launch    {launch_link(url, region)}")
    print(f"publish   sam publish --template {packaged} --region {region}")
    return 0


def application(version: str) -> dict[str, Any]:
    """Returns this product's metadata for AWS's Serverless Application Repository, without the
    addresses of license and readme. (AWS, "AWS SAM template Metadata section properties".)"""
    return {
        "Name": PRODUCT,
        "Description": "An MLflow tracking server on Lambda, S3 and one DynamoDB table",
        "Author": PRODUCT,
        "SpdxLicenseId": "Apache-2.0",
        "Labels": ["mlflow", "machine-learning", "dynamodb", "kubeflow", "llm"],
        "SemanticVersion": version,
    }


def described(template: str, metadata: Mapping[str, Any]) -> str:
    """Returns the text of a packaged template with ``metadata`` added: the description of an
    application of the Serverless Application Repository.

    Raises:
        NotPackaged: the template has no section ``Metadata``, or has such metadata already.
    """
    if template.count(_METADATA) != 1 or SECTION in template:
        _fail("the packaged template has not the section Metadata that was built")
    entry = f"{_METADATA}  {SECTION}: {json.dumps(metadata)}\n"
    return template.replace(_METADATA, entry, 1)


def launch_link(template_url: str, region: str) -> str:
    """Returns the address of the console page that creates a stack of the template. The page asks
    for the parameters."""
    query = urlencode({"templateURL": template_url, "stackName": "mlflow"}, quote_via=quote)
    console = f"https://{region}.console.aws.amazon.com/cloudformation/home?region={region}"
    return f"{console}#/stacks/create/review?{query}"


def _upload_code(sam: Sequence[str], build: Path, packaged: Path, bucket: str, prefix: str) -> None:
    """Uploads functions and layers with the SAM CLI, which writes the template that names them."""
    if not (build / "template.yaml").is_file():
        _fail(f"{build} holds no template.yaml; run `make build`")
    done = subprocess.run(
        [
            *(*sam, "package", "--template-file", str(build / "template.yaml")),
            *("--output-template-file", str(packaged), "--s3-bucket", bucket),
            *("--s3-prefix", prefix, "--no-progressbar"),
        ],
        check=False,
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
    )
    if done.returncode:
        _fail(f"sam package ended with {done.returncode}")


def _fail(message: str) -> Any:
    raise NotPackaged(message)


if __name__ == "__main__":
    sys.exit(main())
