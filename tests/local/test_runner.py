"""The runner as its users meet it: a process with a command line, a port, a folder and signals."""

import http.client
import json
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from local import command_line
from tests.engines import Engine, client

from .conftest import PATIENT_SECONDS, ROOT, eventually


def spent() -> float:
    """Seconds of the processor that the processes took that have ended, with their own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_serves_and_ends_cleanly(local: Any) -> None:
    before = spent()
    runner = local("--ephemeral")
    assert runner.request("GET", "/health")[:2] == (200, b"OK")
    folder = Path(runner.value("data"))
    assert f"export MLFLOW_TRACKING_URI=http://127.0.0.1:{runner.port}" in runner.output
    assert runner.end(signal.SIGTERM) == 0
    assert spent() - before < 4
    assert not folder.exists()
    assert "GET /health 200" in runner.output


def test_requests_become_events_and_answers(local: Any) -> None:
    runner = local("--ephemeral", "--no-indexer")
    status, body, headers = runner.request(
        "POST", "/echo/x%20y?q=1", '{"é":1}'.encode(), Content_Type="application/json", X_Up="U"
    )
    assert (status, headers["content-type"]) == (200, "application/json")
    got = json.loads(body)
    assert got["event"]["rawPath"] == "/echo/x y"
    assert got["event"]["pathParameters"] == {"proxy": "x y"}
    assert got["event"]["body"] == '{"é":1}'
    assert got["event"]["headers"]["x-up"] == "U"
    assert got["function"] == "EchoFunction"
    assert 1000 < got["remaining"] <= 2000
    assert got["greeting"] == "hello"
    assert got["environment"]["TABLE_NAME"] == "mlflow-serverless"
    assert got["environment"]["POWERTOOLS_METRICS_DISABLED"] == "true"

    assert runner.request("GET", "/nothing")[:2] == (404, b'{"message":"Not Found"}')
    internal = (500, b'{"message":"Internal Server Error"}')
    for action in ("raise", "exit", "broken", "large?bytes=6291456", "sleep?seconds=3"):
        assert runner.request("GET", f"/echo/{action}")[:2] == internal, action
    eventually(lambda: "ValueError: as asked" in runner.output)
    eventually(lambda: "timed out after 2 s" in runner.output)
    assert runner.request("GET", "/echo/binary")[1] == b"\x00\xff"
    status, body, headers = runner.request("GET", "/echo/cookies")
    assert (status, body, headers.get_all("set-cookie")) == (204, b"", ["a=1", "b=2; Path=/"])
    assert runner.request("HEAD", "/echo/x")[:2] == (200, b"")
    large = b"x" * (6 * 1024 * 1024 + 1)
    for size in (len(large), 5_000_000):
        status, body, _ = runner.request("POST", "/echo/x", large[:size])
        assert (status, body) == (413, b'{"message":"Request Entity Too Large"}')
    for _ in range(2):
        assert runner.request("GET", "/echo/x?" + "q" * 11_000)[0] == 200
    eventually(lambda: runner.output.count("API Gateway refuses more than 10240") == 1)
    assert runner.request("GET", "/echo/x?" + "q" * 65_536)[0] == 431
    assert len(runner.request("GET", "/echo/large?bytes=6000000")[1]) == 6_000_000


def test_stream_reaches_the_function(local: Any, tmp_path: Any) -> None:
    folder = tmp_path / "data"
    runner = local(f"--data={folder}")
    for name, body in (("a", "1"), ("bad", "poison"), ("b", "2")):
        assert runner.request("PUT", f"/items/{name}", body, Content_Type="text/plain")[0] == 200
    eventually(lambda: runner.request("GET", "/items/b?kind=COPY")[1] == b"2")
    assert runner.request("GET", "/items/a?kind=COPY")[1] == b"1"
    assert runner.request("GET", "/items/bad?kind=COPY")[0] == 404
    assert len((folder / "dead-letters.jsonl").read_text().splitlines()) == 1
    assert runner.end(signal.SIGINT) == 0

    checkpoints = (folder / "checkpoints.json").read_text()
    quiet = local(f"--data={folder}", "--no-indexer")
    assert quiet.request("PUT", "/items/c", "3", Content_Type="text/plain")[0] == 200
    time.sleep(0.5)  # nothing is to happen, and nothing tells that it would have by now
    assert quiet.request("GET", "/items/c?kind=COPY")[0] == 404
    assert quiet.end() == 0
    assert (folder / "checkpoints.json").read_text() == checkpoints

    again = local(f"--data={folder}")
    eventually(lambda: again.request("GET", "/items/c?kind=COPY")[1] == b"3")
    assert len((folder / "dead-letters.jsonl").read_text().splitlines()) == 1
    assert again.end() == 0


def test_sigkill_keeps_the_data(local: Any, tmp_path: Any) -> None:
    folder = tmp_path / "data"
    runner = local(f"--data={folder}")
    stop = threading.Event()
    acknowledged: list[str] = []

    def write() -> None:
        while not stop.is_set():
            name = str(len(acknowledged))
            try:
                if (
                    runner.request("PUT", f"/items/{name}", name, Content_Type="text/plain")[0]
                    == 200
                ):
                    acknowledged.append(name)
            except (OSError, http.client.HTTPException):
                return

    writer = threading.Thread(target=write)
    writer.start()
    eventually(lambda: len(acknowledged) > 50)
    runner.end(signal.SIGKILL)
    stop.set()
    writer.join()
    again = local(f"--data={folder}")
    for name in acknowledged:
        assert again.request("GET", f"/items/{name}")[1] == name.encode()
    eventually(lambda: again.request("GET", f"/items/{acknowledged[-1]}?kind=COPY")[0] == 200)
    assert again.end() == 0


def test_two_runners_do_not_share_a_folder(local: Any, tmp_path: Any) -> None:
    folder = tmp_path / "data"
    runner = local(f"--data={folder}")
    second = local(f"--data={folder}", ready=False)
    assert second.process.wait(PATIENT_SECONDS) == 1
    assert f"in use by another runner (process {runner.process.pid})" in second.output
    assert runner.request("GET", "/health")[0] == 200


def test_a_killed_ephemeral_run_is_cleaned_by_the_next(local: Any) -> None:
    runner = local("--ephemeral")
    folder = Path(runner.value("data"))
    runner.end(signal.SIGKILL)
    assert folder.exists()
    assert local("--ephemeral").end() == 0
    assert not folder.exists()


def test_the_users_engine_is_used(local: Any, dynoxide: Engine) -> None:
    credentials = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    runner = local(
        "--ephemeral",
        AWS_ENDPOINT_URL_DYNAMODB=dynoxide.endpoint,
        TABLE_NAME="another-table-name",
        **credentials,
    )
    assert "from AWS_ENDPOINT_URL_DYNAMODB" in runner.output
    assert runner.request("PUT", "/items/a", "1", Content_Type="text/plain")[0] == 200
    eventually(lambda: runner.request("GET", "/items/a?kind=COPY")[1] == b"1")
    assert runner.end() == 0
    item = client(dynoxide.endpoint).get_item(
        TableName="another-table-name", Key={"PK": {"S": "P"}, "SK": {"S": "ITEM#a"}}
    )["Item"]
    assert item["body"] == {"S": "1"}


def test_sigterm_finishes_running_requests(local: Any) -> None:
    runner = local("--ephemeral")
    answers = []
    request = threading.Thread(
        target=lambda: answers.append(runner.request("GET", "/echo/sleep?seconds=1")[0])
    )
    request.start()
    eventually(lambda: "asleep" in runner.output)
    assert runner.end() == 0
    request.join()
    assert answers == [200]


def test_sigterm_during_the_start_leaves_nothing(local: Any, tmp_path: Any) -> None:
    folder = tmp_path / "data"
    runner = local(f"--data={folder}", ready=False)
    eventually((folder / "store").exists)
    assert runner.end() == 0
    assert "Traceback" not in runner.output


def test_impatient_signals_do_not_interrupt_the_end(local: Any) -> None:
    runner = local("--ephemeral")
    folder = Path(runner.value("data"))
    while runner.process.poll() is None:
        runner.process.send_signal(signal.SIGTERM)
        time.sleep(0.02)
    assert runner.process.returncode == 0
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "environ", "code", "message"),
    [
        (["--ephemeral", "--data=x"], {}, 2, "not allowed with"),
        (["--port=70000"], {}, 2, "0 to 65535"),
        (["--ephemeral"], {"TABLE_NAME": "../other"}, 1, "is no name of a table"),
        (["--ephemeral"], {"AWS_ENDPOINT_URL_DYNAMODB": "sqlite:///x"}, 1, "names a store"),
        (["--ephemeral", "--template=/absent.yaml"], {}, 1, "/absent.yaml"),
        (["--data=/proc/nothing"], {}, 1, "cannot use the folder"),
        (["--ephemeral", "--host=192.0.2.1"], {}, 1, "cannot listen on 192.0.2.1"),
    ],
)
def test_refusals(local: Any, arguments: Any, environ: Any, code: Any, message: Any) -> None:
    runner = local(*arguments, ready=False, **environ)
    assert runner.process.wait(PATIENT_SECONDS) == code
    assert message in runner.output
    assert "Traceback" not in runner.output


def test_a_taken_port_is_named(local: Any) -> None:
    runner = local("--ephemeral")
    second = local("--ephemeral", f"--port={runner.port}", ready=False)
    assert second.process.wait(PATIENT_SECONDS) == 1
    assert f"cannot listen on 127.0.0.1:{runner.port}" in second.output


def test_help_is_short() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "local", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in (
        "--port",
        "--host",
        "--data",
        "--ephemeral",
        "--auth",
        "--no-indexer",
        "--workspaces",
    ):
        assert name in shown


def test_system_tables_are_published_at_the_chosen_interval() -> None:
    assert command_line.parse([]).publication_seconds() == 60
    chosen = command_line.parse(["--parameter", "SystemTablesMinutes=59"])
    assert chosen.publication_seconds() == 59 * 60


@pytest.mark.parametrize("minutes", ["0", "60", "-1", "1.5", "", "soon", "١"])
def test_another_interval_is_refused(minutes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command_line.parse(["--parameter", f"SystemTablesMinutes={minutes}"])
    assert "is no number of minutes from 1 to 59" in capsys.readouterr().err


KNOWN = "has the default password, which everybody knows"
EVERYWHERE = "--host=0.0.0.0"


def test_the_default_password_is_warned_of_and_stays_on_this_machine(product: Any) -> None:
    refused = product("--auth", EVERYWHERE, ready=False)
    assert refused.process.wait(PATIENT_SECONDS) == 2
    assert "--host 0.0.0.0 is open to other machines" in refused.output
    assert "MLFLOW_AUTH_ADMIN_PASSWORD" in refused.output
    assert "Traceback" not in refused.output
    # Nobody was made with it, so a password may still be chosen.
    chosen = product("--auth", EVERYWHERE, MLFLOW_AUTH_ADMIN_PASSWORD="chosen by me")
    assert KNOWN not in chosen.output
    assert chosen.end() == 0
    # The folder's administrator has that one from now on, whatever the environment says.
    again = product("--auth", EVERYWHERE)
    assert KNOWN not in again.output
    assert again.end() == 0


@pytest.mark.parametrize("argument", ["--auth", "--parameter=Authentication=basic"])
def test_the_default_password_on_this_machine(product: Any, argument: str) -> None:
    runner = product(argument)
    assert f"WARNING: the administrator 'admin' {KNOWN}" in runner.output
    assert runner.end() == 0
    # Setting another one later does not change it.
    late = product("--auth", EVERYWHERE, ready=False, MLFLOW_AUTH_ADMIN_PASSWORD="too late")
    assert late.process.wait(PATIENT_SECONDS) == 2


def _megabytes_mapped(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    (size,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmSize")]
    return int(size) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at as on Linux")
def test_an_idle_runner_is_small(product: Any) -> None:
    """Threads have no places of their own to allocate in, of 64 MB each; and what few need is not
    loaded."""
    runner = product()
    leader = runner.process.pid
    started = Path(f"/proc/{leader}/task").glob("*/children")
    children = [int(pid) for each in started for pid in each.read_text().split()]
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in (leader, *children)}
    python = [pid for pid, command in commands.items() if "-m\0local" in command]
    assert len(list(Path(f"/proc/{leader}/task").iterdir())) > 8
    assert len(python) == 2
    assert [pid for pid in python if _megabytes_mapped(pid) > 500] == []
    assert "cryptography" not in Path(f"/proc/{leader}/maps").read_text()
    assert runner.end() == 0


def test_a_runner_with_its_own_store_loads_no_session_of_botocore() -> None:
    code = "import sys, local.runner; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    stdout = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "local.store.store" in stdout.split()
    assert not {"botocore.session", "botocore.awsrequest"} & set(stdout.split())
