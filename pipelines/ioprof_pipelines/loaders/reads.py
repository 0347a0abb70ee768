"""Bytes and nothing else: the same files, order and concurrency, without decoding.

What this loader reaches is the fetch ceiling.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from ioprof_pipelines.loaders.loader import Batch, Part
from ioprof_pipelines.sharding import Indices

_BUFFER_BYTES = 1 << 20


class ReadsLoader:
    """Whole files by open, read and close, on as many threads as the other loaders have workers."""

    def __init__(self, part: Part) -> None:
        config = part.config
        self._part = part
        self.prefetch_batches = config.prefetch * config.workers
        self._pool = ThreadPoolExecutor(config.workers)
        self._buffers = threading.local()
        self._stopped = False

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches without images, each once all of its files are read."""
        plan = iter(self._part.batches(number))
        under_way: deque[tuple[Indices, list[Future[list[tuple[str, str]]]]]] = deque()
        while True:
            while not self._stopped and len(under_way) <= self.prefetch_batches:
                indices = next(plan, None)
                if indices is None:
                    break
                under_way.append((indices, self._submit(indices)))
            if not under_way:
                return
            yield self._batch(*under_way.popleft())

    def _submit(self, indices: Indices) -> list[Future[list[tuple[str, str]]]]:
        # A few files per task: one task per file would measure the pool, not storage.
        parts = max(1, min(len(indices), self._part.config.workers * 4))
        return [
            self._pool.submit(self._read_all, [int(i) for i in indices[start::parts]])
            for start in range(parts)
        ]

    def _batch(self, indices: Indices, tasks: list[Future[list[tuple[str, str]]]]) -> Batch:
        bad = [problem for task in tasks for problem in task.result()]
        return Batch(
            images=None,
            labels=None,
            samples=len(indices) - len(bad),
            stored_bytes=int(self._part.files.stored_bytes[indices].sum()),
            bad=bad,
        )

    def _read_all(self, indices: list[int]) -> list[tuple[str, str]]:
        buffer = getattr(self._buffers, "buffer", None)
        if buffer is None:
            buffer = self._buffers.buffer = bytearray(_BUFFER_BYTES)
        bad: list[tuple[str, str]] = []
        for index in indices:
            try:
                descriptor = os.open(self._part.files.path(index), os.O_RDONLY)
            except OSError as error:
                bad.append((self._part.files.name(index), f"cannot be opened: {error.strerror}"))
                continue
            try:
                while os.readv(descriptor, [buffer]):
                    pass
            except OSError as error:
                bad.append((self._part.files.name(index), f"cannot be read: {error.strerror}"))
            finally:
                os.close(descriptor)
        return bad

    def stop(self) -> None:
        """Submit no further batch."""
        self._stopped = True

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)
