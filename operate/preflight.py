"""Checks what a deployment needs before anything is created: credentials, region, tools, quotas,
and parameters that belong together. Reads only."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from local import program_name
from operate import sam_build

UNRESERVED: Final = 100
"""Concurrent executions that Lambda keeps for functions without reserved concurrency (AWS,
"Configuring reserved concurrency")."""
RESERVING: Final = ("AuthorizerConcurrency", "IndexerConcurrency")
COMFORTABLE: Final = 100
"""With an account quota of fewer concurrent executions a team would be throttled. New accounts may
have ten."""
LEAST_SAM: Final = (1, 110)
MOST_NAMES: Final = 2500
"""How many characters of user names fit into a function's environment variables, which are
limited to 4 KB."""
NOBODY: Final = "nobody"
"""The value of ``AlarmEmail`` that states that nobody shall be notified of alarms."""
FAR_CERTIFICATES: Final = "us-east-1"
"""The region in which CloudFront's certificates must be."""
UNREADY: Final = {
    "ROLLBACK_COMPLETE": "the first deployment failed; delete the stack, then deploy",
    "ROLLBACK_FAILED": "the first deployment failed, and so did its removal; turn off the deletion"
    " protection of the table that is left, then delete the stack",
    "CREATE_FAILED": "the first deployment failed; delete the stack, then deploy",
    "IMPORT_ROLLBACK_FAILED": "an import of resources failed, and so did its rollback; continue it"
    " in CloudFormation's console, then deploy",
    "DELETE_FAILED": "the stack was being deleted; delete it again, then deploy",
    "UPDATE_ROLLBACK_FAILED": "continue the rollback"
    " (`aws cloudformation continue-update-rollback`), then deploy",
}
"""Statuses of a stack in which no deployment can start."""


class CheckResult(NamedTuple):
    """The result of one check before a deployment. ``state`` is ``ok``, ``note`` (worth reading) or
    ``missing`` (nothing is deployed)."""

    subject: str
    state: str
    detail: str


class Plan(NamedTuple):
    """The values of a deployment that is about to start.

    ``given`` holds the parameters that it sets, ``declared`` the template's parameters with their
    defaults, and ``deployed`` the parameters of the existing stack, None if there is no stack.
    """

    stage: str
    stack: str
    given: Mapping[str, str]
    declared: Mapping[str, Mapping[str, Any]]
    deployed: Mapping[str, str] | None
    status: str
    """The state of the stack; empty if there is none."""

    def value(self, name: str) -> str:
        """Returns the value that a parameter of the template will have after the deployment: the
        given one; otherwise that of the existing stack; otherwise the template's default."""
        before = (self.deployed or {}).get(name)
        default = self.declared.get(name, {}).get("Default", "")
        return str(self.given.get(name, default if before is None else before))


def examine(
    plan: Plan, client: Callable[..., Any], region: str | None, sam: Sequence[str]
) -> list[CheckResult]:
    """Checks, before a deployment, whether it can succeed; returns the results, the most basic ones
    first. Without a region or valid AWS credentials, checks that need them are left out.

    Args:
        client: makes a client of an AWS service, like ``boto3.client``.
        region: the session's region; None if none is set.
        sam: the command that starts the SAM CLI.
    """
    findings = [_sam(sam), _region(region), *_parameters(plan, region or ""), _stack(plan)]
    if region is None:
        return findings
    identity = _unless_refused("credentials", lambda: _credentials(client("sts")))
    findings.append(identity._replace(state="missing") if identity.state == "note" else identity)
    if identity.state != "ok":
        return findings
    findings.append(_unless_refused("Lambda", lambda: _concurrency(plan, client("lambda"))))
    if plan.value("CodeScorerLayerArn"):
        findings.append(
            _unless_refused("scorer layer", lambda: _scorer_layer(plan, client("lambda")))
        )
    if plan.value("Ui") == "true":
        findings.append(
            _unless_refused("CloudFront", lambda: _distributions(plan, client("cloudfront")))
        )
    return findings


def _unless_refused(subject: str, check: Callable[[], CheckResult]) -> CheckResult:
    """Returns the result of ``check``. If AWS refuses its call, returns a note that it could not be
    checked: a role that may deploy may lack the right to read this."""
    try:
        return check()
    except (BotoCoreError, ClientError) as error:
        return CheckResult(subject, "note", f"could not be checked: {error}")


def _sam(command: Sequence[str]) -> CheckResult:
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError as error:
        return CheckResult("SAM CLI", "missing", f"{error}; {program_name.sam_installation()}")
    version = re.search(r"(\d+)\.(\d+)\.\d+", done.stdout)
    if version is None:
        return CheckResult("SAM CLI", "missing", f"no version: {done.stdout}{done.stderr}".strip())
    if (int(version[1]), int(version[2])) < LEAST_SAM:
        least = ".".join(map(str, LEAST_SAM))
        return CheckResult("SAM CLI", "missing", f"{version[0]} is too old; {least} is needed")
    return CheckResult("SAM CLI", "ok", version[0])


def _region(region: str | None) -> CheckResult:
    if region is None:
        return CheckResult(
            "region", "missing", "set AWS_DEFAULT_REGION, or the region of your profile"
        )
    return CheckResult("region", "ok", region)


def _credentials(sts: Any) -> CheckResult:
    identity = sts.get_caller_identity()
    return CheckResult("credentials", "ok", f"{identity['Arn']} in account {identity['Account']}")


def _parameters(plan: Plan, region: str) -> Iterator[CheckResult]:
    for name in plan.given:
        if name not in plan.declared:
            yield CheckResult("parameters", "missing", f"the template has no parameter {name}")
    for name, declared in plan.declared.items():
        if "Default" not in declared and not plan.value(name):
            values = "|".join(declared.get("AllowedValues", ()))
            yield CheckResult(
                "parameters", "missing", f"{name} has no default; set {name}={values}"
            )
    has_layer, packages = plan.value("CodeScorerLayerArn"), plan.value("CodeScorerPackages")
    if bool(has_layer) != bool(packages) or (has_layer and plan.value("CodeScorers") != "true"):
        yield CheckResult(
            "parameters",
            "missing",
            "CodeScorerLayerArn and CodeScorerPackages need each other and CodeScorers=true",
        )
    certificate = plan.value("UiCertificateArn")
    if certificate and certificate.split(":")[3:4] != [FAR_CERTIFICATES]:
        detail = f"UiCertificateArn must be a certificate in {FAR_CERTIFICATES}"
        yield CheckResult("certificate", "missing", detail)
    certificate = plan.value("ApiCertificateArn")
    if certificate and region and certificate.split(":")[3:4] != [region]:
        yield CheckResult("certificate", "missing", f"ApiCertificateArn must be in {region}")
    if plan.value("Ui") == "true" and region.startswith("us-gov-"):
        yield CheckResult("CloudFront", "missing", f"{region} has no CloudFront; set Ui=false")
    names = len(plan.value("IamUsers")) + len(plan.value("IamAdministrators"))
    if names > MOST_NAMES:
        yield CheckResult(
            "parameters",
            "missing",
            f"IamUsers and IamAdministrators have {names} characters, and Lambda's environment room"
            f" for {MOST_NAMES}; put names into the setting iam_users",
        )
    yield _alarms(plan)


def _alarms(plan: Plan) -> CheckResult:
    receivers = [plan.value(name) for name in ("AlarmEmail", "AlarmTopicArn")]
    named = [receiver for receiver in receivers if receiver not in ("", NOBODY)]
    if named:
        return CheckResult("alarms", "ok", f"notify {', '.join(named)}")
    if plan.stage != "prod" or NOBODY in receivers:
        return CheckResult("alarms", "note", "notify nobody")
    return CheckResult(
        "alarms",
        "missing",
        "nobody would be notified: set AlarmEmail=you@example.com or AlarmTopicArn, or say"
        f" AlarmEmail={NOBODY}",
    )


def _stack(plan: Plan) -> CheckResult:
    if plan.status in UNREADY:
        return CheckResult(
            "stack", "missing", f"{plan.stack} is {plan.status}: {UNREADY[plan.status]}"
        )
    if plan.status.endswith("_IN_PROGRESS") and plan.status != "REVIEW_IN_PROGRESS":
        return CheckResult("stack", "missing", f"{plan.stack} is {plan.status}: wait until it ends")
    return CheckResult("stack", "ok", f"{plan.stack}, {plan.status or 'to be created'}")


def _concurrency(plan: Plan, service: Any) -> CheckResult:
    """Checks whether the concurrency that the plan reserves is available. It is taken from the
    account's unreserved concurrency, of which at least 100 must remain."""
    limit = service.get_account_settings()["AccountLimit"]
    total, free = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    before = plan.deployed or {}
    wanted = sum(int(plan.value(name) or 0) for name in RESERVING)
    remaining = free + sum(int(before.get(name, 0)) for name in RESERVING) - wanted
    if wanted and remaining < UNRESERVED:
        return CheckResult(
            "Lambda",
            "missing",
            f"{' and '.join(RESERVING)} reserve {wanted} of {total} concurrent executions, which"
            f" would leave {remaining}; Lambda wants {UNRESERVED} to stay. Set both to 0, or raise"
            " the quota (Service Quotas, Lambda, Concurrent executions)",
        )
    if total < COMFORTABLE:
        return CheckResult(
            "Lambda",
            "note",
            f"the account runs {total} functions at once; more calls than that are throttled. Raise"
            " the quota (Service Quotas, Lambda, Concurrent executions)",
        )
    return CheckResult(
        "Lambda", "ok", f"{total} concurrent executions, {remaining} for all to share"
    )


def _scorer_layer(plan: Plan, service: Any) -> CheckResult:
    """Checks whether the layer with the packages of scorers runs on the functions' processor."""
    arn = plan.value("CodeScorerLayerArn")
    layer = service.get_layer_version_by_arn(Arn=arn)
    for field, wanted in (
        ("CompatibleArchitectures", plan.value("Architecture")),
        ("CompatibleRuntimes", sam_build.PYTHON),
    ):
        named = layer.get(field, ())
        if named and wanted not in named:
            return CheckResult(
                "scorer layer", "missing", f"{arn} is for {', '.join(named)}, not for {wanted}"
            )
    return CheckResult("scorer layer", "ok", arn)


def _distributions(plan: Plan, service: Any) -> CheckResult:
    """Checks whether the account has CloudFront distributions. Some new accounts may create the
    first one only after AWS's support has verified the account, and no call shows that before. So
    an account without distributions gets a note."""
    number = service.list_distributions(MaxItems="1")["DistributionList"].get("Quantity", 0)
    if number or plan.deployed:
        return CheckResult("CloudFront", "ok", "the account has distributions")
    return CheckResult(
        "CloudFront",
        "note",
        "the account has no distribution yet. If AWS answers 'Your account must be verified', ask"
        " its support, and deploy with Ui=false until then",
    )
