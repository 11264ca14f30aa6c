"""Puts the runner together: folder, engine, table, functions, stream, server.

And takes it apart in reverse.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import socket
from collections.abc import Callable
from typing import Any

from local import engine as engines
from local import environment, folder, table, ttl
from local.access_log import report
from local.aws_endpoint import AwsEndpoint
from local.batch import DeadLetters
from local.checkpoints import Checkpoints
from local.command_line import Options
from local.completion import Completion
from local.engine import Engine
from local.engine_file import EngineFile
from local.folder import DataFolder
from local.function import Function, ImportFailed
from local.housekeeping import Housekeeping
from local.kms import Kms
from local.queue_poller import QueuePoller
from local.routes import Router
from local.server import Application, Server, listen
from local.sqs import Queues
from local.storage import Storage
from local.stream import StreamPoller, stream_client
from local.template import Template, read
from local.website import Website

HEALTH_SECONDS = 30


class CannotStart(Exception):
    """Something the user asked for is not possible; the message says what."""


class Runner:
    """One run of the product on this machine."""

    def __init__(self, options: Options, told_to_stop: Callable[[], bool] = lambda: False) -> None:
        self._options = options
        self._told_to_stop = told_to_stop
        self._pollers: list[StreamPoller] = []
        self._engine: Engine | None = None
        self._code = 0

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
            environment.answer_to_own_names(options.host)
            environment.prepare(
                template.functions.values(), endpoint, own_engine=self._engine is not None
            )
            queues = self._answer_for_aws(stack, place, template)
            dynamodb = table.client("dynamodb")
            stream = table.ensure(dynamodb, name, template.table)
            file = EngineFile(place.database, name) if self._engine else None
            if file:
                file.index_stream()
            functions = self._functions(template)
            if options.auth:
                self._ensure_admin()
            storage = Storage(files) if files else None
            application = Application(router, functions, Website(), storage)
            server = Server(application, bound)
            self._work_off(stack, template, functions, queues)
            if options.indexer and stream:
                self._follow(stack, template, application, functions, stream, place, file)
            if file:
                completion = self._complete(stack, functions, file)
                self._keep_house(stack, server, dynamodb, file, name, template, storage, completion)
            # Nothing that exists now will ever be garbage.
            gc.collect()
            gc.freeze()
            server.serve(lambda: self._announce(bound, place, endpoint), self._told_to_stop)
        return self._code

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
        # A signal may come before the engine that was just started is anybody's to stop.
        stack.callback(engines.stop_abandoned, place)
        self._engine = Engine(place)
        stack.callback(self._engine.stop)
        return self._engine.endpoint

    def _ensure_admin(self) -> None:
        """The administrator, who exists, and has a password, from the first start with
        authentication."""
        from mlcore.auth.passwords import hash_password  # noqa: PLC0415 - after the environment
        from mlcore.repos import users  # noqa: PLC0415

        username, password = environment.administrator()
        user = users.find(username)
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
        for function in functions.values():
            try:
                function.load()
            except ImportFailed as error:
                report(str(error))
        return functions

    def _follow(
        self,
        stack: contextlib.ExitStack,
        template: Template,
        application: Application,
        functions: dict[str, Function],
        stream: str,
        place: DataFolder,
        file: EngineFile | None,
    ) -> None:
        checkpoints, dead_letters = Checkpoints(place.checkpoints), DeadLetters(place.dead_letters)
        client = stream_client(table.client) if template.mappings else None
        for mapping in template.mappings:
            poller = StreamPoller(
                mapping,
                client=client,
                stream=stream,
                invoke=functions[mapping.function].invoke,
                checkpoints=checkpoints,
                dead_letters=dead_letters,
                region=environment.region(),
                written_at=file.written_at if file else None,
                busy=application.busy,
            )
            self._pollers.append(poller)
            stack.callback(poller.stop)
            poller.start()

    def _complete(
        self, stack: contextlib.ExitStack, functions: dict[str, Function], file: EngineFile
    ) -> Completion | None:
        """What an earlier run left unfinished is completed where the indexer runs."""
        pollers = [
            poller
            for poller in self._pollers
            if functions[poller.mapping.function].definition.handler.startswith("indexer.")
        ]
        if not pollers:
            return None
        completion = Completion(file, pollers)
        stack.callback(completion.stop)
        completion.start()
        return completion

    def _keep_house(
        self,
        stack: contextlib.ExitStack,
        server: Server,
        dynamodb: Any,
        file: EngineFile,
        name: str,
        template: Template,
        storage: Storage | None,
        completion: Completion | None,
    ) -> None:
        engine = self._engine
        assert engine is not None  # noqa: S101 - for the type checker
        attribute = table.ttl_attribute(template.table)
        key = [part["AttributeName"] for part in template.table["KeySchema"]]

        def died() -> None:
            report(f"the DynamoDB engine ended with code {engine.process.returncode}")
            self._code = 1
            server.stop()

        tasks = {"stream records trimmed": lambda: self._trim(file)}
        if attribute:
            tasks["expired items deleted"] = lambda: ttl.sweep(dynamodb, file, name, key, attribute)
        if storage:
            tasks["abandoned uploads deleted"] = storage.drop_abandoned
        if completion:
            tasks["runs with unfinished writes completed"] = completion.abandoned
        house = Housekeeping(lambda: engine.process.poll() is None, died, tasks)
        stack.callback(house.stop)
        house.start()

    def _trim(self, file: EngineFile) -> int:
        """Without a poller nothing is trimmed.

        A later run with the indexer still wants the records.
        """
        positions = [poller.processed() for poller in self._pollers]
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
        kind = " (thrown away at the end)" if place.ephemeral else ""
        owner = "started here" if self._engine else "from AWS_ENDPOINT_URL_DYNAMODB"
        print(
            f"mlflow-serverless  http://{shown}:{port}\n"
            f"  data     {place.path}{kind}\n"
            f"  engine   {endpoint} ({owner})\n"
            f"  indexer  {'on' if self._pollers else 'off'}\n"
            f"  client   export MLFLOW_TRACKING_URI=http://{shown}:{port}\n"
            "ready",
            flush=True,
        )


def _health(host: str, port: int) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=HEALTH_SECONDS)
    try:
        connection.request("GET", "/health")
        return str(connection.getresponse().status)
    except OSError as error:
        return str(error)
    finally:
        connection.close()
