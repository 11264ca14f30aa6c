"""The local server's threads, each of which serves one client connection. When the connection has
ended, its thread takes the next one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final

THREAD_NAME: Final = "request"
IDLE_SECONDS: Final = 10.0
"""How long a thread without a connection waits for one before it ends."""

Job = Callable[[], None]


class RequestThreads:
    """A thread pool without a limit: starts each job at once, in an idle thread or a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._idle = 0
        """The number of threads that wait for a job and for which no job is queued yet."""
        self._stopped = False

    def run(self, job: Job) -> None:
        """Starts the job in a thread that does nothing else meanwhile, and returns at once. The
        job must not raise exceptions.

        Raises:
            RuntimeError: the system allows no further thread.
        """
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._jobs.put(job)
                return
        # A handler that hangs must not keep the process alive.
        threading.Thread(target=self._work, args=(job,), name=THREAD_NAME, daemon=True).start()

    def stop(self) -> None:
        """Ends the idle threads. Each other thread ends after the connection that it serves."""
        with self._lock:
            self._stopped = True
            for _ in range(self._idle):
                self._jobs.put(None)
            self._idle = 0

    def _work(self, job: Job | None) -> None:
        while job:
            job()
            job = self._next()

    def _next(self) -> Job | None:
        with self._lock:
            if self._stopped:
                return None
            self._idle += 1
        try:
            return self._jobs.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            with self._lock:
                try:  # a job that was queued meanwhile counts on one of the idle threads
                    return self._jobs.get_nowait()
                except queue.Empty:
                    self._idle -= 1
                    return None
