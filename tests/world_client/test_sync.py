"""The synchronous face gives what the asynchronous client gives."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from world_client import (
    ConnectionFailedError,
    SearchRequest,
    SyncWorldClient,
    WorldClient,
)


class EchoHandler(BaseHTTPRequestHandler):
    """Answers searches with no hits and fetches with a miss; batches by their length."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/fetch":
            content = {"outcome": "not_in_world", "url": body["url"]}
        elif self.path == "/v1/search/batch":
            content = {"answers": [self._empty(one["query"]) for one in body["searches"]]}
        else:
            content = self._empty(body["query"])
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    @staticmethod
    def _empty(query: str) -> dict[str, object]:
        return {"outcome": "empty", "query": query, "hits": []}

    def log_message(self, *args: object) -> None:
        """Keep the test output clean."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), EchoHandler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_every_call_has_its_synchronous_twin(url: str) -> None:
    with SyncWorldClient(WorldClient(url)) as client:
        assert client.search("a").query == "a"
        assert client.send_search(SearchRequest(query="b", mode="lexical")).query == "b"
        batch = client.search_batch([SearchRequest(query="c"), SearchRequest(query="d")])
        assert [answer.query for answer in batch] == ["c", "d"]
        assert client.fetch("https://x.example/").outcome == "not_in_world"


def test_an_address_is_enough(url: str) -> None:
    with SyncWorldClient(url, key="k") as client:
        assert client.search("lighthouse").hits == []
        assert client.fetch("https://a.example/").outcome == "not_in_world"


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "", "localhost", "ftp://a.example"])
def test_an_address_without_its_scheme_is_refused(address: str) -> None:
    with pytest.raises(ConnectionFailedError, match="write http://") as caught:
        SyncWorldClient(address)
    assert not caught.value.trainable  # the operator wrote it, not the model


def test_many_threads_share_one_client(url: str) -> None:
    with SyncWorldClient(WorldClient(url)) as client, ThreadPoolExecutor(8) as pool:
        names = [f"q{number}" for number in range(100)]
        assert [answer.query for answer in pool.map(client.search, names)] == names


def test_errors_pass_through(unused_tcp_port: int) -> None:
    with (
        SyncWorldClient(WorldClient(f"http://127.0.0.1:{unused_tcp_port}")) as client,
        pytest.raises(ConnectionFailedError),
    ):
        client.search("a")


def test_closing_twice_is_harmless(url: str) -> None:
    client = SyncWorldClient(WorldClient(url))
    client.search("a")
    client.close()
    client.close()
