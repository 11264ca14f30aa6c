"""Starts the parts of the local server and ends them: data folder, the store in DynamoDB's place,
its table, functions, stream process, HTTP server."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local import banner, data_folder, environment, program_name, runner_record, table
from local.audit_file import AuditFile
from local.aws.endpoint import AwsEndpoint
from local.aws.kms import Kms, KmsClient
from local.aws.sqs import Queues
from local.aws.storage import Storage
from local.command_line import Options
from local.data_folder import DataFolder
from local.disk_health import DiskHealth, no_room_message, unwritable_message
from local.events.catalog_watch import start_watching as watch_catalog
from local.events.queue_poller import QueuePoller, stop_all
from local.events.stream_process import StreamProcess
from local.events.stream_process_parameters import StreamJob
from local.events.table_publisher import TablePublisher
from local.housekeeping import Housekeeping
from local.http.application import Application
from local.http.routes import Router
from local.http.server import Server, is_loopback, listen
from local.http.ui_files import Website
from local.lambda_function import Function, load_first
from local.log import report
from local.shared_activity import SharedActivity
from local.store import expired_items, store
from local.store.file_maintenance import TableFile
from local.store_preparation import StoreUnusable, prepare_store
from local.store_preparation import endpoint as own_endpoint
from local.template import Template
from local.template_cache import read
from mlcore import secrets
from mlcore.errors import MlflowError
from mlcore.scorer_cage import server_stop

_ADVICE = "Make room or make it writable, or choose another folder with --data"


class CannotStart(Exception):
    """Raised if the local server cannot start with the user's options; the message says why."""

    code = 1


class UnsafeOptions(CannotStart):
    """Raised if other machines could connect to a server whose admin has the default password."""

    code = 2


class Runner:
    """One run of the local server, with the options of the command line."""

    def __init__(
        self, options: Options, is_stop_requested: Callable[[], bool] = lambda: False
    ) -> None:
        self._options = options
        self._is_stop_requested = is_stop_requested
        self._stream_process: StreamProcess | None = None
        self._warnings: list[str] = []
        self._proxied = environment.reach_this_machine_directly()
        self._end: Callable[[], None] = lambda: None

    def run(self) -> int:
        """Serves requests until the process is stopped. Returns the exit code 0.

        Raises:
            CannotStart, TemplateError, FolderInUse, FolderTooNew: with a message for the user.
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
            folder = self._folder(stack)
            file, endpoint = self._open_store(folder, name)
            files = environment.keep_files(folder.artifacts)
            tables = environment.keep_tables(folder.system_tables)
            environment.answer_to_own_names(options.host)
            environment.answer_at(options.host, bound.getsockname()[1])
            environment.prepare(template.functions.values(), endpoint, own_store=file is not None)
            with _disk_errors_explained(folder):
                queues = self._answer_for_aws(stack, folder, template)
            dynamodb = table.SharedClient() if file else table.client("dynamodb")
            # Closing the last connection moves SQLite's log into the file.
            stack.callback(dynamodb.close)
            with _disk_errors_explained(folder):
                stream = table.ensure(dynamodb, name, template.table)
            functions = {key: Function(function) for key, function in template.functions.items()}
            if options.parameters()["Authentication"] == "basic":
                with _disk_errors_explained(folder):
                    self._ensure_admin()
            storage = Storage(files) if files else None
            health = DiskHealth([folder.path, *([files] if files else [])], file)
            logging.getLogger("mlcore").addHandler(health)
            stack.callback(logging.getLogger("mlcore").removeHandler, health)
            audit = self._keep_audit(stack, tables)
            activity = stack.enter_context(contextlib.closing(SharedActivity()))
            application = Application(router, functions, Website(), storage, health, activity)
            server = Server(application, bound)
            self._end = server.stop
            self._start_queue_pollers(stack, template, functions, queues)
            watch_catalog(stack, functions.values(), options.catalog or folder.path / "catalog")
            if options.indexer and stream:
                job = self._stream_job(template, stream, folder, file, activity)
                following = self._start_stream_process(
                    stack, StreamProcess(job, health.record_warning)
                )
                if file and tables:
                    self._publish(stack, template, following, file, tables, audit)
            if file:
                self._start_housekeeping(stack, dynamodb, file, name, template, storage)
            # Objects made until now live as long as the process: exempt them from collection.
            gc.freeze()
            gc.enable()
            server.serve(
                lambda: self._announce(bound, folder, endpoint, functions, is_own=file is not None),
                self._is_stop_requested,
            )
        return 0

    def _listen(self, stack: contextlib.ExitStack) -> socket.socket:
        host, port = self._options.host, self._options.port
        try:
            return stack.enter_context(listen(host, port))
        except OSError as error:
            raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}") from error

    def _folder(self, stack: contextlib.ExitStack) -> DataFolder:
        path = self._options.data
        try:
            folder = DataFolder(path) if path else data_folder.ephemeral()
        except OSError as error:
            raise CannotStart(
                f"cannot use the folder {path or error.filename}: {error.strerror}. {_ADVICE}"
            ) from error
        stack.callback(folder.close)
        no_room = no_room_message(folder.path)
        if no_room:
            raise CannotStart(f"{no_room}. {_ADVICE}")
        if path:
            stack.callback(runner_record.remove, folder)
        return folder

    def _open_store(self, folder: DataFolder, name: str) -> tuple[TableFile | None, str]:
        """Returns the table's file and the store's endpoint; or no file and the endpoint of the
        engine that the user named."""
        foreign = environment.foreign_engine()
        if foreign:
            if store.folder_of(foreign):
                raise CannotStart(
                    "AWS_ENDPOINT_URL_DYNAMODB names a store: name its folder, --data"
                )
            return None, foreign
        store.register()
        try:
            return prepare_store(folder, name), own_endpoint(folder)
        except StoreUnusable as error:
            raise CannotStart(str(error)) from error

    def _ensure_admin(self) -> None:
        """Creates the first administrator if the user does not exist, and sets a password if that
        administrator has none (an imported user has none). Raises UnsafeOptions if the password is
        the well-known default and other machines can connect.
        """
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
                raise UnsafeOptions(
                    f"--host {self._options.host} is open to other machines, and the default "
                    f"password of the administrator {username!r} is known to everybody: set "
                    "MLFLOW_AUTH_ADMIN_PASSWORD, or change it:\n  "
                    f"{program_name.commands()} create-admin --name {username} --replace --data DIR"
                )
            self._warnings.append(
                banner.WELL_KNOWN_ADMIN_WARNING.format(
                    name=username, program=program_name.commands()
                )
            )
        if user is None:
            users.create(username, hash_password(password), is_admin=True)
        elif user.is_admin and not user.password_hash:  # an imported user has none
            users.update(username, password_hash=hash_password(password))

    def _answer_for_aws(
        self, stack: contextlib.ExitStack, folder: DataFolder, template: Template
    ) -> Queues:
        queues = Queues(folder.queues, template.queues)
        stack.callback(queues.close)
        kms = Kms(folder.secrets_key)
        secrets.register(KmsClient(kms))
        stack.callback(secrets.register, None)
        services = AwsEndpoint({**kms.operations(), **queues.operations()})
        stack.callback(services.stop)
        services.start()
        environment.point_to(services.url)
        return queues

    def _start_queue_pollers(
        self,
        stack: contextlib.ExitStack,
        template: Template,
        functions: dict[str, Function],
        queues: Queues,
    ) -> None:
        pollers = [
            QueuePoller(
                mapping,
                queues=queues,
                invoke=functions[mapping.function].invoke,
                region=environment.region(),
            )
            for mapping in template.queue_mappings
        ]
        stack.callback(stop_all, pollers, server_stop.stop_all)
        for poller in pollers:
            poller.start()

    def _start_stream_process(
        self, stack: contextlib.ExitStack, following: StreamProcess
    ) -> StreamProcess:
        self._stream_process = following
        stack.callback(following.stop)
        following.start()
        return following

    def _stream_job(
        self,
        template: Template,
        stream: str,
        folder: DataFolder,
        file: TableFile | None,
        activity: SharedActivity,
    ) -> StreamJob:
        """Returns the work of the stream process, which runs in parallel with requests."""
        return StreamJob(
            stream=stream,
            region=environment.region(),
            table=environment.table_name(),
            database=str(file.path) if file else None,
            checkpoints=str(folder.checkpoints),
            dead_letters=str(folder.dead_letters),
            mappings=list(template.mappings),
            functions=[
                template.functions[name] for name in sorted(_background_functions(template))
            ],
            schedules=list(template.schedules),
            shared_activity=activity.descriptor,
            end=file.last_record() if file else 0,
        )

    def _publish(
        self,
        stack: contextlib.ExitStack,
        template: Template,
        following: StreamProcess,
        file: TableFile,
        tables: Path,
        audit: AuditFile | None,
    ) -> None:
        landing = [
            following.position(mapping.name)
            for mapping in template.mappings
            if template.functions[mapping.function].handler.startswith("lander.")
        ]
        if landing:
            every_seconds = self._options.publication_seconds()
            publishing = TablePublisher(tables, landing, file, audit, every_seconds)
            stack.callback(publishing.stop)
            publishing.start()

    def _keep_audit(self, stack: contextlib.ExitStack, tables: Path | None) -> AuditFile | None:
        """Starts writing the audit log of this run, and returns its file; None if the system
        tables are in S3."""
        if tables is None:
            return None
        audit = AuditFile(tables)
        stack.callback(audit.stop)
        audit.start()
        return audit

    def _start_housekeeping(
        self,
        stack: contextlib.ExitStack,
        dynamodb: Any,
        file: TableFile,
        name: str,
        template: Template,
        storage: Storage | None,
    ) -> None:
        attribute = table.ttl_attribute(template.table)
        key = [part["AttributeName"] for part in template.table["KeySchema"]]

        mappings = [mapping.name for mapping in template.mappings]
        tasks = {"stream records trimmed": lambda: self._trim(file, mappings)}
        if attribute:
            tasks["expired items deleted"] = lambda: expired_items.delete_expired(
                dynamodb, file, name, key, attribute
            )
        if storage:
            tasks["abandoned uploads deleted"] = storage.drop_abandoned
        house = Housekeeping(tasks)
        stack.callback(house.stop)
        house.start()

    def _trim(self, file: TableFile, mappings: Sequence[str]) -> int:
        """Deletes the stream's old records that all mappings have processed; returns how many.
        Deletes nothing if no stream process runs, because a later run with the indexer still needs
        the records.
        """
        if self._stream_process is None:
            return 0
        positions = [self._stream_process.processed(mapping) for mapping in mappings]
        known = [position for position in positions if position is not None]
        return file.trim_stream(min(known)) if known and len(known) == len(positions) else 0

    def _announce(
        self,
        bound: socket.socket,
        folder: DataFolder,
        endpoint: str,
        functions: dict[str, Function],
        *,
        is_own: bool,
    ) -> None:
        """Prints the banner once ``GET /health`` succeeds; otherwise reports why the product is not
        ready.
        """
        host, port = bound.getsockname()[:2]
        name = banner.reachable_name(host)
        answer = banner.health_status(name, port)
        if answer != "200":
            report(f"GET /health: {answer}; the product is not ready")
            return
        authentication = self._options.parameters()["Authentication"]
        if authentication == "none" and not is_loopback(host):
            report(banner.OPEN_WARNING.format(host=host))
        for warning in self._warnings:
            report(warning)
        try:
            runner_record.write(folder, f"http://{name}:{port}", endpoint)
        except OSError as error:
            report(f"commands cannot find this runner: its record: {error.strerror}")
        facts = banner.BannerValues(
            host=host,
            port=port,
            folder=folder,
            table=endpoint,
            own_store=is_own,
            indexer=self._stream_process is not None,
            authentication=authentication,
            proxied=self._proxied,
        )
        # In one write, so that no line of the log comes between its lines.
        print(banner.text(facts) + "\n", end="", flush=True)
        load_first(functions.values())


def _background_functions(template: Template) -> set[str]:
    following = {mapping.function for mapping in template.mappings}
    return following | {schedule.function for schedule in template.schedules}


@contextlib.contextmanager
def _disk_errors_explained(folder: DataFolder) -> Iterator[None]:
    """Turns errors of the store, its file or the core layer into CannotStart, whose message says
    whether the disk is full."""
    try:
        yield
    except (BotoCoreError, ClientError, sqlite3.Error, OSError, MlflowError) as error:
        reason = unwritable_message([folder.path]) or f"Is there room on the disk of {folder.path}?"
        raise CannotStart(f"the data cannot be used: {error}. {reason}") from error
