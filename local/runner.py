"""Puts the runner together: folder, engine, table, functions, stream, server; and ends them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import logging
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local import environment, folder
from local.aws.endpoint import AwsEndpoint
from local.aws.kms import Kms
from local.aws.sqs import Queues
from local.aws.storage import Storage
from local.command_line import Options
from local.condition import Condition, damaged, find_unwritable
from local.engine import engine as engines
from local.engine import table, ttl
from local.engine.engine import Engine, EngineFailed
from local.engine.file import EngineFile
from local.events.catalog import watch as watch_catalog
from local.events.job import Job
from local.events.process import StreamProcess
from local.events.publishing import Publishing
from local.events.queue_poller import QueuePoller
from local.folder import DataFolder
from local.function import Function, ImportFailed
from local.housekeeping import Housekeeping
from local.http.routes import Router
from local.http.server import Application, Server, is_loopback, listen
from local.http.website import Website
from local.log import report
from local.pulse import Pulse
from local.template import Template, read
from mlcore.errors import MlflowError

HEALTH_SECONDS = 30

CHECK_SECONDS = 0.7
"""How long a start looks for damage in the engine's file: some hundred megabytes."""

_EVERYBODY_KNOWS = (
    "WARNING: the administrator {name!r} has the default password, which everybody knows. Set "
    "MLFLOW_AUTH_ADMIN_PASSWORD before the first start on a folder, or change it now:\n"
    "  python -m local.admin create-admin --name {name} --replace --data DIR   (runner stopped)"
)


class CannotStart(Exception):
    """Something the user asked for is not possible; the message says what."""

    code = 1


class Refused(CannotStart):
    """The command asks for what would be dangerous."""

    code = 2


class Runner:
    """One run of the product on this machine."""

    def __init__(self, options: Options, told_to_stop: Callable[[], bool] = lambda: False) -> None:
        self._options = options
        self._told_to_stop = told_to_stop
        self._following: StreamProcess | None = None
        self._engine: Engine | None = None
        self._warnings: list[str] = []
        self._end: Callable[[], None] = lambda: None
        self._lost = False
        """The engine is given up."""

    def run(self) -> int:
        """Serves until stopped; answers the exit code.

        Raises:
            CannotStart, TemplateError, EngineFailed, FolderInUse: with a message for the user.
        """
        options = self._options
        name, region = environment.table_name(), environment.region()
        template = read(options.template, name, region, options.parameters())
        unknown = sorted({name for name, _ in options.chosen} - template.parameters)
        if unknown:
            raise CannotStart(f"the template has no parameter {', '.join(unknown)}")
        router = Router(template.routes)
        with contextlib.ExitStack() as stack:
            bound = self._listen(stack)
            place = self._folder(stack)
            endpoint = self._start_engine(stack, place, name)
            files = environment.keep_files(place.artifacts)
            tables = environment.keep_tables(place.system_tables)
            environment.answer_to_own_names(options.host)
            environment.answer_at(options.host, bound.getsockname()[1])
            environment.prepare(
                template.functions.values(), endpoint, own_engine=self._engine is not None
            )
            queues = self._answer_for_aws(stack, place, template)
            dynamodb = table.OwnClient() if self._engine else table.client("dynamodb")
            file = EngineFile(place.database, name) if self._engine else None
            with _explained(place):
                stream = table.ensure(dynamodb, name, template.table)
                if file:
                    file.index_stream()
            functions = self._functions(template)
            if options.auth or options.parameters()["Authentication"] == "basic":
                with _explained(place):
                    self._ensure_admin()
            storage = Storage(files) if files else None
            condition = Condition([place.path, *([files] if files else [])], file)
            logging.getLogger("mlcore").addHandler(condition)
            stack.callback(logging.getLogger("mlcore").removeHandler, condition)
            pulse = stack.enter_context(contextlib.closing(Pulse()))
            application = Application(router, functions, Website(), storage, condition, pulse)
            server = Server(application, bound)
            self._end = server.stop
            self._work_off(stack, template, functions, queues)
            watch_catalog(stack, functions.values(), options.catalog or place.path / "catalog")
            if options.indexer and stream:
                job = self._job(template, stream, place, file, pulse)
                following = self._follow(stack, StreamProcess(job, condition.hear))
                if file and tables:
                    self._publish(stack, template, following, file, tables)
            if file:
                self._keep_house(stack, dynamodb, file, name, template, storage)
            # Nothing that exists now will ever be garbage.
            gc.collect()
            gc.freeze()
            server.serve(
                lambda: self._announce(bound, place, endpoint),
                lambda: self._lost or self._told_to_stop(),
            )
        return 1 if self._lost else 0

    def _listen(self, stack: contextlib.ExitStack) -> socket.socket:
        host, port = self._options.host, self._options.port
        try:
            return stack.enter_context(listen(host, port))
        except OSError as error:
            raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}") from error

    def _folder(self, stack: contextlib.ExitStack) -> DataFolder:
        path = self._options.data
        try:
            place = DataFolder(path) if path else folder.ephemeral(engines.stop_abandoned)
        except OSError as error:
            raise CannotStart(f"cannot use the folder {path}: {error.strerror}") from error
        stack.callback(place.close)
        return place

    def _start_engine(self, stack: contextlib.ExitStack, place: DataFolder, name: str) -> str:
        """The endpoint of the engine, ours or the one that the user named."""
        foreign = environment.foreign_engine()
        if foreign:
            return foreign
        if len(name) < table.MINIMUM_NAME_LENGTH:
            raise CannotStart(
                f"TABLE_NAME={name}: the embedded engine needs a name of "
                f"{table.MINIMUM_NAME_LENGTH} characters or more"
            )
        engines.stop_abandoned(place)
        file = EngineFile(place.database, name)
        damage = file.damage(CHECK_SECONDS)
        if damage:
            raise CannotStart(damaged(file, damage))
        self._engine = Engine(place, lambda message: self._give_up(message, file))
        stack.callback(self._engine.stop)
        try:
            self._engine.start()
        except EngineFailed as error:
            unwritable = find_unwritable([place.path])
            raise CannotStart(f"{error}. {unwritable}" if unwritable else str(error)) from error
        return self._engine.endpoint

    def _give_up(self, message: str, file: EngineFile) -> None:
        """Without an engine nothing can be answered."""
        report(message)
        damage = file.damage(CHECK_SECONDS)
        if damage:
            report(damaged(file, damage))
        self._lost = True
        self._end()

    def _ensure_admin(self) -> None:
        """The administrator, who exists, and has a password, from the first start with
        authentication."""
        # After the environment is complete:
        from mlcore.auth.passwords import check_password, hash_password  # noqa: PLC0415
        from mlcore.repos.users import users  # noqa: PLC0415

        username, password = environment.administrator()
        user = users.find(username)
        known = environment.DEFAULT_PASSWORD
        if user is None or not user.password_hash:
            default = password == known
        else:
            default = check_password(known, user.password_hash)
        if default:
            if not is_loopback(self._options.host):
                raise Refused(
                    f"--host {self._options.host} is open to other machines, and the default "
                    f"password of the administrator {username!r} is known to everybody: set "
                    "MLFLOW_AUTH_ADMIN_PASSWORD, or change it (local.admin create-admin --replace)"
                )
            self._warnings.append(_EVERYBODY_KNOWS.format(name=username))
        if user is None:
            users.create(username, hash_password(password), is_admin=True)
        elif user.is_admin and not user.password_hash:  # as an import leaves one
            users.update(username, password_hash=hash_password(password))

    def _answer_for_aws(
        self, stack: contextlib.ExitStack, place: DataFolder, template: Template
    ) -> Queues:
        """Starts what stands for the services beside the engine."""
        queues = Queues(place.queues, template.queues)
        stack.callback(queues.close)
        services = AwsEndpoint({**Kms(place.secrets_key).operations(), **queues.operations()})
        stack.callback(services.stop)
        services.start()
        environment.point_to(services.url)
        return queues

    def _work_off(
        self,
        stack: contextlib.ExitStack,
        template: Template,
        functions: dict[str, Function],
        queues: Queues,
    ) -> None:
        for mapping in template.queue_mappings:
            poller = QueuePoller(
                mapping,
                queues=queues,
                invoke=functions[mapping.function].invoke,
                region=environment.region(),
            )
            stack.callback(poller.stop)
            poller.start()

    def _functions(self, template: Template) -> dict[str, Function]:
        functions = {name: Function(one) for name, one in template.functions.items()}
        here = {route.function for route in template.routes}
        here |= {mapping.function for mapping in template.queue_mappings}
        for name, function in functions.items():
            if name in _beside(template) - here:
                continue
            try:
                function.load()
            except ImportFailed as error:
                report(str(error))
        return functions

    def _follow(self, stack: contextlib.ExitStack, following: StreamProcess) -> StreamProcess:
        self._following = following
        stack.callback(following.stop)
        following.start()
        return following

    def _job(
        self,
        template: Template,
        stream: str,
        place: DataFolder,
        file: EngineFile | None,
        pulse: Pulse,
    ) -> Job:
        """What is to be done beside the requests, by a process of its own."""
        return Job(
            stream=stream,
            region=environment.region(),
            table=environment.table_name(),
            database=str(place.database) if file else None,
            checkpoints=str(place.checkpoints),
            dead_letters=str(place.dead_letters),
            mappings=list(template.mappings),
            functions=[template.functions[name] for name in sorted(_beside(template))],
            schedules=list(template.schedules),
            pulse=pulse.descriptor,
            began=time.time(),
            end=file.last_record() if file else 0,
        )

    def _publish(
        self,
        stack: contextlib.ExitStack,
        template: Template,
        following: StreamProcess,
        file: EngineFile,
        tables: Path,
    ) -> None:
        """The system tables are published where the lander runs."""
        landing = [
            following.position(mapping.name)
            for mapping in template.mappings
            if template.functions[mapping.function].handler.startswith("lander.")
        ]
        if landing:
            publishing = Publishing(tables, landing, file)
            stack.callback(publishing.stop)
            publishing.start()

    def _keep_house(
        self,
        stack: contextlib.ExitStack,
        dynamodb: Any,
        file: EngineFile,
        name: str,
        template: Template,
        storage: Storage | None,
    ) -> None:
        attribute = table.ttl_attribute(template.table)
        key = [part["AttributeName"] for part in template.table["KeySchema"]]

        mappings = [mapping.name for mapping in template.mappings]
        tasks = {"stream records trimmed": lambda: self._trim(file, mappings)}
        if attribute:
            tasks["expired items deleted"] = lambda: ttl.sweep(dynamodb, file, name, key, attribute)
        if storage:
            tasks["abandoned uploads deleted"] = storage.drop_abandoned
        house = Housekeeping(tasks)
        stack.callback(house.stop)
        house.start()

    def _trim(self, file: EngineFile, mappings: Sequence[str]) -> int:
        """Where the stream is not followed nothing is trimmed: a later run with the indexer wants
        the records."""
        if self._following is None:
            return 0
        positions = [self._following.processed(mapping) for mapping in mappings]
        known = [position for position in positions if position is not None]
        return file.trim_stream(min(known)) if known and len(known) == len(positions) else 0

    async def _announce(self, bound: socket.socket, place: DataFolder, endpoint: str) -> None:
        """Says where everything is, once the product has answered ``GET /health``."""
        host, port = bound.getsockname()[:2]
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        shown = f"[{reachable}]" if ":" in reachable else reachable
        answer = await asyncio.get_running_loop().run_in_executor(None, _health, reachable, port)
        if answer != "200":
            report(f"GET /health: {answer}; the product is not ready")
            return
        for warning in self._warnings:
            report(warning)
        kind = " (thrown away at the end)" if place.ephemeral else ""
        owner = "started here" if self._engine else "from AWS_ENDPOINT_URL_DYNAMODB"
        print(
            f"mlflow-serverless  http://{shown}:{port}\n"
            f"  data     {place.path}{kind}\n"
            f"  engine   {endpoint} ({owner})\n"
            f"  indexer  {'on' if self._following else 'off'}\n"
            f"  client   export MLFLOW_TRACKING_URI=http://{shown}:{port}\n"
            "ready",
            flush=True,
        )


def _beside(template: Template) -> set[str]:
    """The functions that the stream or a schedule calls."""
    following = {mapping.function for mapping in template.mappings}
    return following | {schedule.function for schedule in template.schedules}


@contextlib.contextmanager
def _explained(place: DataFolder) -> Iterator[None]:
    """
    Raises:
        CannotStart: in place of what the engine, its file or the layer says of a disk.
    """
    try:
        yield
    except (BotoCoreError, ClientError, sqlite3.Error, OSError, MlflowError) as error:
        raise CannotStart(
            f"the table cannot be used: {error}. Is there room on the disk of {place.path}?"
        ) from error


def _health(host: str, port: int) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=HEALTH_SECONDS)
    try:
        connection.request("GET", "/health")
        return str(connection.getresponse().status)
    except OSError as error:
        return str(error)
    finally:
        connection.close()
