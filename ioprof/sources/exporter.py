"""A Prometheus exporter on this machine: plain HTTP to loopback, with a deadline for the whole.

No proxy is asked, no redirection followed, and no other machine ever spoken to.
"""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

from ioprof.clock import MonotonicClock

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_DEADLINE_S = 2.0
_MOST_BYTES = 8 << 20
_CHUNK_BYTES = 1 << 16


class Exporter:
    """One address such as http://127.0.0.1:9191/metrics; ValueError for one that is not here."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
            listed = ", ".join(_LOOPBACK)
            raise ValueError(f"{address} is not http to this machine ({listed})")
        self._host = parts.hostname
        self._port = parts.port or 80
        self._path = parts.path or "/metrics"

    def fetch(self, *, deadline_s: float = _DEADLINE_S) -> bytes:
        """Its text as it is now; OSError when it does not answer in time, or answers no text."""
        clock = MonotonicClock()
        end_s = clock.now_s() + deadline_s
        connection = http.client.HTTPConnection(self._host, self._port, timeout=deadline_s)
        try:
            connection.request("GET", self._path)
            with connection.getresponse() as answer:
                if answer.status != http.HTTPStatus.OK:
                    raise OSError(0, f"the exporter answered {answer.status} {answer.reason}")
                text = b""
                while part := answer.read1(_CHUNK_BYTES):
                    text += part
                    # The timeout is one of silence: a trickle would go on for ever.
                    if clock.now_s() > end_s or len(text) > _MOST_BYTES:
                        raise TimeoutError(0, f"the exporter's text has no end in {deadline_s:g} s")
                return text
        except http.client.HTTPException as error:
            raise OSError(0, f"the exporter's answer is not HTTP: {error!r}") from None
        finally:
            connection.close()
