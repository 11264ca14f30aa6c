"""Runs the steps of a checkup of a server one after the other, removes the entities that they
created, and prints their results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from operate.doctor import outcome as outcomes
from operate.doctor.api import Api, login_of_environment
from operate.doctor.checkup_state import Checkup, Options
from operate.doctor.outcome import LEFT_OUT, OK, SLOW, WRONG, LeftOut, StepOutcome, Wrong
from operate.doctor.stack import deployment_of
from operate.doctor.steps import STEPS, Step

REMOVAL: Final = "removal"
REMOVAL_SECONDS: Final = 30.0
ATTEMPTS: Final = 3
"""How often the removal of one entity is attempted."""


class DoctorOptions(NamedTuple):
    """The options of the command ``doctor``."""

    url: str
    profile: str | None
    stack: str | None
    client: str | None
    receiver: str | None
    receiver_url: str | None
    endpoint: str | None
    without: Sequence[str]
    patience: float
    json: Path | None


def run(options: DoctorOptions) -> int:
    """Runs ``doctor``: checks a running server and prints a line for each step. Returns 1 if a step
    found a fault, the user interrupted it, or something it created was not removed; otherwise 0."""
    api = Api(options.url, login_of_environment(), options.profile)
    checkup = Checkup(
        api,
        deployment_of(options.url, options.stack, options.profile),
        Options(
            options.client,
            options.receiver,
            options.receiver_url,
            options.endpoint,
            options.patience,
        ),
    )
    began = time.time()
    results = examine(checkup, options.without, partial(print, flush=True))
    print(outcomes.summary(results))
    if options.json is not None:
        _write(options.json, checkup, began, results)
    return 1 if any(result.status == WRONG for result in results) else 0


def examine(
    checkup: Checkup, without: Sequence[str], tell: Callable[[str], object]
) -> list[StepOutcome]:
    """Runs the steps of a checkup and returns the outcome of each. If a step fails that the later
    ones need, such as the login, the later ones are not run. The last outcome is that of the
    removal of what the steps created, which always runs.

    Args:
        without: the names of steps to skip.
        tell: called with the line that describes the outcome of each step.
    """
    steps = [step for step in STEPS if step.name not in without]
    width = max(len(step.name) for step in (*steps, STEPS[0]))
    results = []

    def add(outcome: StepOutcome) -> None:
        shown = outcome._replace(detail=outcomes.without_secrets(outcome.detail, checkup.secrets))
        results.append(shown)
        tell(outcomes.row(shown, width))

    with checkup.api.interruption.handled():
        try:
            for step in steps:
                add(_taken(step, checkup))
                if step.decides and results[-1].status == WRONG:
                    break
            checkup.api.interruption.check()
        except KeyboardInterrupt:
            add(StepOutcome("interruption", WRONG, 0, 0, "the checkup was interrupted"))
        finally:
            add(_removed(checkup))
    return results


def _taken(step: Step, checkup: Checkup) -> StepOutcome:
    began = time.monotonic()
    try:
        status, detail = OK, step.take(checkup)
    except LeftOut as reason:
        status, detail = LEFT_OUT, str(reason)
    except Wrong as error:
        status, detail = WRONG, str(error)
    except (BotoCoreError, ClientError) as error:
        status, detail = _of_aws(error)
    except OSError as error:
        status, detail = WRONG, f"on this machine: {error}"
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        status, detail = WRONG, f"the answer has an unexpected form: {error!r}"
    took = time.monotonic() - began
    if status == OK and took > step.seconds:
        status = SLOW
    return StepOutcome(step.name, status, took, step.seconds, detail)


def _of_aws(error: Exception) -> tuple[str, str]:
    """Returns the status and message for an error of an AWS call in a step. A missing right of the
    role that runs the checkup counts as a step left out, because the deployment is not at fault."""
    code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
    if "AccessDenied" in code or "Unauthorized" in code:
        return LEFT_OUT, f"these AWS credentials may not ask: {error}"
    return WRONG, str(error)


def _removed(checkup: Checkup) -> StepOutcome:
    began = time.monotonic()
    left = []
    for made in reversed(checkup.made):
        reason = _attempted(made.remove)
        if reason:
            left.append(f"{made.name} ({reason})")
    removed = len(checkup.made) - len(left)
    checkup.facts["left"] = left
    detail = f"{removed} things removed"
    if left:
        detail += f"; STILL THERE: {', '.join(left)}"
    elif note := checkup.facts.get("remains"):
        detail += f"; {note}"
    took = time.monotonic() - began
    return StepOutcome(REMOVAL, WRONG if left else OK, took, REMOVAL_SECONDS, detail)


def _attempted(remove: Callable[[], object]) -> str:
    """Calls ``remove``, with retries. Returns an empty text on success, otherwise the last error's
    text."""
    reason = ""
    for attempt in range(ATTEMPTS):
        try:
            remove()
        except (Wrong, LeftOut, BotoCoreError, ClientError) as error:
            reason = str(error)
            time.sleep(attempt)
        else:
            return ""
    return reason


def _write(path: Path, checkup: Checkup, began: float, results: Sequence[StepOutcome]) -> None:
    report: dict[str, Any] = {
        "url": checkup.api.url,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "seconds": round(time.time() - began, 3),
        "stack": checkup.deployment.stack if checkup.deployment else None,
        "version": checkup.facts.get("version"),
        "ok": not any(result.status == WRONG for result in results),
        "steps": [result.as_json() for result in results],
        "left": checkup.facts["left"],
    }
    text = outcomes.without_secrets(json.dumps(report, indent=2), checkup.secrets)
    path.write_text(f"{text}\n", encoding="utf-8")
