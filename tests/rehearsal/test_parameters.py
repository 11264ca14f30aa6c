"""The SAM CLI's own parser reads the parameters that `make deploy` gives it as they were meant."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from operate.deployment import sam_parameter
from tests.rehearsal.stack import SAM, NoInterpreter, interpreter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("sam_parameters.py")
VALUES = (
    "",
    "plain",
    "openid profile email",
    " a  b ",
    "a,b, c",
    'with "quotes" inside',
    "with 'quotes' inside",
    "A=1 B=2",
    r"a\d+\.b",
    "https://example.com/x?y=z&w=%20",
    "arn:aws:kms:eu-west-1:1:key/k",
)


def read(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        interpreter()
    except NoInterpreter as missing:
        pytest.skip(str(missing))
    return subprocess.run(
        [str(SAM.with_name("python")), str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_each_value_arrives_as_it_was_given() -> None:
    given = {f"P{number}": value for number, value in enumerate(VALUES)}
    done = read(*(sam_parameter(*pair) for pair in given.items()))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == given


def test_without_quotes_values_are_cut_and_refused() -> None:
    """So the quotes are needed; when this fails, the SAM CLI has learnt it."""
    assert json.loads(read("P=openid profile").stdout) == {"P": "openid"}
    assert read("P=").returncode != 0


@pytest.mark.parametrize("value", ["end\\", "a\\ b", "a\\'b", 'a\\"b', "a\\\\b"])
def test_what_sam_cannot_be_told_is_refused(value: str) -> None:
    with pytest.raises(LookupError, match="P: SAM"):
        sam_parameter("P", value)
