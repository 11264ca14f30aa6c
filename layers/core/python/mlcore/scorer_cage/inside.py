"""The program of the process in which a scorer runs: reads the call from standard input, gives up
all rights, runs the scorer, and writes its feedback to the pipe that was standard output.

The process is *sealed* when it has given up all rights. No code of the scorer runs before; its
source is not even parsed. When the process is sealed, it writes :data:`SEALED`. An answer that does
not begin with it was written before the scorer ran, so it can be trusted. Exit codes: 0 after
:data:`SEALED` and the feedback; :data:`REFUSED` with the reason, without :data:`SEALED`, if the
system offers no cage, and without a reason if the server has ended; another one if a package cannot
be imported.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, Final

from mlcore.scorer_cage import (
    child_processes,
    ensembles,
    feedback_json,
    importable_modules,
    namespaces,
    syscalls,
    traces,
)
from mlcore.scorer_cage.assessments import Feedback, MlflowException

SEALED: Final = b"sealed\n"
REFUSED: Final = 3
"""Exit code if the system does not offer what the cage needs."""
_FILE: Final = "<scorer>"
_MAX_DESCRIPTOR: Final = 65_536
_NICENESS: Final = 5


class _Silence(io.TextIOBase):
    """Replaces standard output and error, and discards what packages and the scorer print."""

    def write(self, text: str) -> int:
        return len(text)


def main() -> None:
    """Reads the server's request from standard input, runs the scorer in it, writes the scorer's
    feedback to the pipe for the answer, and ends the process."""
    request = json.loads(sys.stdin.buffer.read())
    scorer = request["scorer"]
    _keep_the_answer()
    try:
        child_processes.end_with_parent()
        if os.getppid() != request["server"]:
            os._exit(REFUSED)  # it ended before
        child_processes.adopt()
        # Dependencies of packages are imported from the packages' folders, not from the server's
        # libraries.
        sys.path[:] = [path for path in sys.path if path != request["layer"]]
        sys.path += request["package_paths"]
        names = importable_modules.prepare(_sources(scorer), request["packages"])
        arguments = _arguments(request["call"])
        _give_up_rights(request)
    except syscalls.NoCage as missing:
        child_processes.kill_all()
        _end(str(missing).encode(), REFUSED)
    except BaseException:  # a package may end the interpreter
        child_processes.kill_all()
        os._exit(1)
    _write(SEALED)
    _end(_score(scorer, names, arguments), 0)


def _keep_the_answer() -> None:
    """Moves the pipe of the answer to its own descriptor, which programs do not inherit. So texts
    that packages write to standard output during their import do not get into the answer."""
    os.dup2(1, syscalls.ANSWER_FD, inheritable=False)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), _Silence(), _Silence()


def _give_up_rights(request: Mapping[str, Any]) -> None:
    os.environ.clear()
    os.umask(0o777)
    os.nice(_NICENESS)
    memory_bytes = _address_space(request["memory_bytes"])
    child_processes.check_alone()
    if request["namespaces"]:
        namespaces.enter()
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), _Silence(), _Silence()
    os.closerange(0, syscalls.ANSWER_FD)
    os.closerange(syscalls.ANSWER_FD + 1, _MAX_DESCRIPTOR)
    for name, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, request["cpu_seconds"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        resource.setrlimit(name, (limit, limit))
    syscalls.seal()


def _address_space(memory_bytes: int) -> int:
    """Returns the limit of the address space at which the process can use at most ``memory_bytes``
    of memory. It is higher than that by the addresses that libraries have reserved without using
    them. Raises NoCage if the imported packages already use more memory."""
    sizes = Path("/proc/self/statm").read_text(encoding="ascii").split()
    reserved, used = (int(pages) * resource.getpagesize() for pages in sizes[:2])
    if used > memory_bytes:
        raise syscalls.NoCage(f"the packages that it imports take {used} bytes of memory")
    return memory_bytes + reserved - used


def _score(scorer: Mapping[str, Any], names: dict[str, Any], arguments: Mapping[str, Any]) -> bytes:
    """Runs the scorer and returns the JSON of its feedback."""
    name = scorer["name"]
    try:
        return feedback_json.dump(feedback_json.feedback(name, _result(scorer, names, arguments)))
    except BaseException as error:  # also SystemExit, KeyboardInterrupt and MemoryError
        return feedback_json.dump(feedback_json.failure(name, error))


def _result(scorer: Mapping[str, Any], names: dict[str, Any], arguments: Mapping[str, Any]) -> Any:
    """Returns the result of a scorer, or of an ensemble. Raises whatever the scorer raises."""
    if scorer.get("ensemble_function"):
        results = [(each["name"], _part(each, names, arguments)) for each in scorer["scorers"]]
        return ensembles.combine(scorer["name"], scorer["ensemble_function"], results)
    function = _function(scorer, names)
    expected = inspect.signature(function).parameters
    given = {key: value for key, value in arguments.items() if key in expected}
    return function(**given)


def _part(scorer: Mapping[str, Any], names: dict[str, Any], arguments: Mapping[str, Any]) -> Any:
    """Returns the result of one scorer of an ensemble; feedback with the error if it fails. As in
    MLflow, the function that combines the results decides about failures."""
    name = scorer["name"]
    try:
        return feedback_json.checked(name, _result(scorer, names, arguments))
    except Exception as error:
        return Feedback(name=name, error=error)


def _sources(scorer: Mapping[str, Any]) -> str:
    """Returns the source of a scorer; of an ensemble the sources of all its scorers, joined."""
    return "\n".join((scorer["call_source"], *map(_sources, scorer.get("scorers", ()))))


def _function(scorer: Mapping[str, Any], names: dict[str, Any]) -> Callable[..., Any]:
    """Builds the scorer's function from its body, signature and name, as MLflow does."""
    signature, name = scorer["call_signature"], scorer["original_func_name"]
    try:
        if not signature.startswith("("):
            raise SyntaxError
        (of_signature,) = ast.parse(f"def _f{signature}: pass").body
        parameters = ast.unparse(of_signature.args)  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, AttributeError):
        raise MlflowException.invalid_parameter_value(
            f"Invalid signature format: '{signature}'"
        ) from None
    body = "\n".join(f"    {line}" for line in scorer["call_source"].split("\n"))
    text = f"def {name}({parameters}):\n{body}"
    try:
        # Inherits this module's "from __future__ import annotations", which MLflow adds as well.
        code: CodeType = compile(text, _FILE, "exec")
    except (SyntaxError, ValueError) as error:
        raise MlflowException.invalid_parameter_value(
            f"Failed to recreate function from source code. Error: {error}"
        ) from None
    made: dict[str, Any] = {}
    exec(code, {"__name__": importable_modules.SCORER_MODULE, **names}, made)  # noqa: S102 -- in the cage
    function: Callable[..., Any] = made[name]
    return function


def _arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all arguments that a scorer may ask for, with traces as objects."""
    trace, session = call.get("trace"), call.get("session")
    return {
        "inputs": call.get("inputs"),
        "outputs": call.get("outputs"),
        "expectations": call.get("expectations"),
        "trace": None if trace is None else traces.trace(trace),
        "session": None if session is None else list(map(traces.trace, session)),
    }


def _end(answer: bytes, code: int) -> None:
    """Writes the answer and ends the process without running anything else."""
    try:
        _write(answer)
    finally:
        os._exit(code)


def _write(text: bytes) -> None:
    while text:
        text = text[os.write(syscalls.ANSWER_FD, text) :]
