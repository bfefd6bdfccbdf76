"""The HTTP protocol of a connection, with the limits on request heads that uvicorn lacks."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: 38\r\n"
    b"connection: close\r\n"
    b"\r\n"
    b"The request line or headers are large."
)


_TOO_LONG = (
    b"HTTP/1.1 414 URI Too Long\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: 62\r\n"
    b"connection: close\r\n"
    b"\r\n"
    b"The request line is longer than 65,000 bytes; POST takes more."
)

LINE_LIMIT = 65_000
"""Bytes of a request line; the parser refuses longer addresses without saying why."""

_END = b"\r\n\r\n"


class GuardedProtocol(HttpToolsProtocol):
    """Closes a connection whose request line and headers are late, and refuses large ones.

    The limits ``head_s`` (seconds) and ``head_limit`` (bytes) are part of the state that the app's
    life-cycle yields. The clock starts with the connection, then with the first byte of each
    further request; an idle connection in between is uvicorn's keep-alive. How the network cuts a
    head decides nothing, except that of several requests in one read only the first is counted.

    Bytes of a request line that are not ASCII are percent-encoded before they are parsed: the
    parser refuses them, yet clients send addresses and queries in raw UTF-8.
    """

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _line_bytes = 0
    _last = b""
    _in_head = True
    _in_line = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first request."""
        super().connection_made(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the clock and the count of a request."""
        super().on_message_begin()
        if self._timer is None:
            self._start_clock()

    def on_headers_complete(self) -> None:
        """Stop the clock: the head is whole."""
        self._stop_clock()
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Read on, unless the request line or the head has grown too large."""
        if self._in_line:
            data = self._readable(data)
            if self._line_bytes > LINE_LIMIT:
                self._refuse(_TOO_LONG)
                return
        if self._in_head:
            joined = self._last + data  # the end may be cut in two
            end = joined.find(_END)
            self._head_bytes += (len(joined) if end < 0 else end + len(_END)) - len(self._last)
            self._last = joined[1 - len(_END) :]
            if self._head_bytes > self.app_state["head_limit"]:
                self._refuse(_REFUSAL)
                return
        super().data_received(data)

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()

    def on_message_complete(self) -> None:
        """Expect a request line next."""
        self._in_line = self._in_head = True
        self._head_bytes = self._line_bytes = 0
        self._last = b""
        super().on_message_complete()

    def _readable(self, data: bytes) -> bytes:
        """Return the data with the part that belongs to the request line in ASCII."""
        line, end, rest = data.partition(b"\n")
        self._in_line = not end
        if not line.isascii():
            line = b"".join(b"%%%02X" % byte if byte > 0x7F else bytes((byte,)) for byte in line)
        self._line_bytes += len(line)
        return line + end + rest

    def _start_clock(self) -> None:
        self._timer = self.loop.call_later(self.app_state["head_s"], self._late)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
