"""``make cost``: prints a team's monthly bill, and the monthly costs of an idle deployment."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from bench.bill import idle, usage
from bench.bill.usage import TEAMS, Team
from mlcore.prices import aws as prices

BOOK: Final = idle.ROOT / "docs/operations.md"
QUOTED: Final[dict[str, Callable[[], str]]] = {
    "idle": idle.table,
    "choices": idle.choices,
    "teams": lambda: usage.table(TEAMS),
    "traces": lambda: usage.traces_text(idle.stages()["prod"]),
    "flood": lambda: usage.flood_text(idle.stages()["prod"]),
}


def quoted(text: str) -> str:
    """Returns the text of the page with newly computed tables between its markers."""
    for name, made in QUOTED.items():
        pattern = rf"(<!-- make cost: {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, partial(_between, made()), text, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"{BOOK} has {count} places for the table {name}")
    return text


def _between(made: str, marks: re.Match[str]) -> str:
    return f"{marks[1]}{made}\n{marks[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make cost ARGS=…", description=__doc__)
    middle = TEAMS[1]
    for option, kind, subject in (
        ("runs", int, "runs a day"),
        ("steps", int, "steps of a run, each one call"),
        ("metrics", int, "metrics of a step"),
        ("files", int, "files of a run"),
        ("views", int, "pages opened a day"),
        ("traces", int, "traces a day"),
        ("model-calls", int, "calls of models a day through the AI gateway"),
        ("table-gb", float, "gigabytes in the table"),
        ("files-gb", float, "gigabytes of files"),
    ):
        default = getattr(middle, option.replace("-", "_"))
        parser.add_argument(
            f"--{option}", type=kind, default=default, help=f"{subject} (%(default)s)"
        )
    parser.add_argument("--stage", default="prod", choices=sorted(idle.stages()))
    parser.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="parameter of template.yaml",
    )
    parser.add_argument(
        "--write", action="store_true", help="renew the tables of docs/operations.md and end"
    )
    chosen = vars(parser.parse_args())
    if chosen.pop("write"):
        Path(BOOK).write_text(quoted(BOOK.read_text()))
        return
    stage = idle.stages()[chosen.pop("stage")]
    parameters = {**stage, **dict(pair.split("=", 1) for pair in chosen.pop("parameter"))}
    print(_printed(Team("the team", **chosen), parameters))


def _printed(team: Team, parameters: dict[str, str]) -> str:
    lines = usage.bill(team, parameters)
    width = max(len(line.subject) for line in lines)
    shown = [f"{line.subject:<{width}}  {line.dollars:>12,.2f}" for line in lines]
    total = sum(line.dollars for line in lines)
    return "\n".join(
        [
            f"Dollars a month, list prices of us-east-1 in {prices.DATE}, no free allowance:",
            *shown,
            f"{'together':<{width}}  {total:>12,.2f}",
            "",
            "Of it while nobody works:",
            *(
                f"{item.subject:<{width}}  {item.dollars:>12,.2f} ({item.number} × {item.each:.2f})"
                for item in idle.items(parameters)
            ),
        ]
    )


if __name__ == "__main__":
    main()
