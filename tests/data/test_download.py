from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from unpoison.data import download as download_module
from unpoison.data.download import Remote, algorithm_of, download, hash_file
from unpoison.errors import InputError, OutputError
from unpoison.events import Progress

CONTENT = np.random.default_rng(0).bytes(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Behaviour:
    """What the server does: ``script`` says it for each request in turn, then everything is in order."""

    content: bytes = CONTENT
    ranges: bool = True
    tag: str | None = '"one"'
    lengths: bool = True
    script: list[object] = field(default_factory=list)
    requests: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    behaviour: Behaviour

    def log_message(self, *_: object) -> None:
        """Tests read ``requests`` instead."""

    def do_GET(self) -> None:
        server = self.behaviour
        server.requests.append({"path": self.path, **{k.lower(): v for k, v in self.headers.items()}})
        order = server.script.pop(0) if server.script else None
        if isinstance(order, tuple):
            self._answer(order[0], b"", dict([order[1:]] if order[1:] else []))
            return
        start = self._start()
        if start >= len(server.content) and start > 0:
            self._answer(416, b"", {"Content-Range": f"bytes */{len(server.content)}"})
            return
        extra = {"Content-Range": f"bytes {start}-{len(server.content) - 1}/{len(server.content)}"}
        if order == "another piece":
            extra = {"Content-Range": "bytes 7-9/300000"}
        body = server.content[start:]
        cut = order if isinstance(order, int) else len(body)
        self._answer(206 if start else 200, body, extra if start else {}, cut=cut)

    def _start(self) -> int:
        server = self.behaviour
        asked = self.headers.get("Range", "")
        if not server.ranges or not asked or self.headers.get("If-Range", server.tag) != server.tag:
            return 0
        return int(asked.removeprefix("bytes=").removesuffix("-"))

    def _answer(self, code: int, body: bytes, extra: dict[str, str], *, cut: int | None = None) -> None:
        self.send_response(code)
        if self.behaviour.lengths:
            self.send_header("Content-Length", str(len(body)))
        if self.behaviour.tag is not None:
            self.send_header("ETag", self.behaviour.tag)
        for name, value in extra.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:cut])


@pytest.fixture
def server() -> Iterator[Behaviour]:
    behaviour = Behaviour()
    handler = type("ThisHandler", (Handler,), {"behaviour": behaviour})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        behaviour.url = f"http://127.0.0.1:{http.server_port}/file.bin"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield behaviour
        http.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "new folder" / "file.bin"


def get(server: Behaviour, target: Path, *, digest: str = MD5, max_bytes: int = 400_000, **options) -> None:
    download(Remote(server.url, digest, max_bytes), target, pause=0.0, timeout=5.0, **options)


def left(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir()) if target.parent.exists() else []


@pytest.mark.parametrize("digest", [MD5, SHA256])
def test_a_whole_file(server, target, digest):
    events: list[Progress] = []
    get(server, target, digest=digest, listener=events.append)
    assert target.read_bytes() == CONTENT
    assert left(target) == ["file.bin"]
    assert (events[-1].stage, events[-1].done, events[-1].total) == ("download file.bin", 300_000, 300_000)
    assert [event.done for event in events] == sorted(event.done for event in events)
    assert "range" not in server.requests[0]


def test_a_file_that_is_there_is_not_fetched_again(server, target):
    get(server, target)
    get(server, target)
    assert len(server.requests) == 1
    target.write_bytes(b"something else")
    get(server, target)
    assert target.read_bytes() == CONTENT


def test_a_lost_connection_is_resumed_at_once(server, target):
    server.script = [100_000]
    events: list[Progress] = []
    get(server, target, listener=events.append)
    assert target.read_bytes() == CONTENT
    assert [request.get("range") for request in server.requests] == [None, "bytes=100000-"]
    assert server.requests[1]["if-range"] == '"one"'
    assert events[-1].resumed == 100_000


def test_a_killed_download_is_resumed_by_the_next_one(server, target):
    class Killed(BaseException):
        pass

    def kill(event: Progress) -> None:
        if event.done > 100_000:
            raise Killed

    with pytest.raises(Killed):
        get(server, target, listener=kill)
    assert left(target) == ["file.bin.part", "file.bin.part.etag"]
    before = (target.parent / "file.bin.part").stat().st_size
    assert 0 < before < 300_000
    get(server, target)
    assert server.requests[-1]["range"] == f"bytes={before}-"
    assert target.read_bytes() == CONTENT
    assert left(target) == ["file.bin"]


@pytest.mark.parametrize("tag", [None, 'W/"weak"'])
def test_resuming_without_a_strong_tag(server, target, tag):
    server.tag, server.script = tag, [100_000]
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert server.requests[1]["range"] == "bytes=100000-"
    assert "if-range" not in server.requests[1]


def test_a_server_that_cannot_resume_sends_everything(server, target):
    server.ranges, server.script = False, [100_000]
    get(server, target)
    assert server.requests[1]["range"] == "bytes=100000-"
    assert target.read_bytes() == CONTENT


def test_a_file_that_changed_in_between_is_fetched_from_the_start(server, target):
    target.parent.mkdir()
    (target.parent / "file.bin.part").write_bytes(b"\0" * 100_000)
    (target.parent / "file.bin.part.etag").write_text('"older"')
    get(server, target)
    assert target.read_bytes() == CONTENT


def test_another_piece_than_asked_for_is_not_used(server, target):
    server.script = [100_000, "another piece"]
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert [request.get("range") for request in server.requests] == [None, "bytes=100000-", None]


@pytest.mark.parametrize("size", [300_000, 350_000])
def test_a_part_that_is_whole_or_too_long(server, target, size):
    target.parent.mkdir()
    (target.parent / "file.bin.part").write_bytes((CONTENT + bytes(50_000))[:size])
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert len(server.requests) == (1 if size == 300_000 else 2)


def test_without_a_stated_length(server, target):
    server.lengths = False
    get(server, target)
    assert target.read_bytes() == CONTENT


def test_an_answer_that_always_ends_early_is_an_error_with_the_numbers(server, target):
    server.ranges, server.script = False, [1000] * 9
    with pytest.raises(InputError, match=r"ended after 1,000 of 300,000 bytes, after 4 tries"):
        get(server, target)
    assert len(server.requests) == 4
    assert not target.exists()


@pytest.mark.parametrize("lengths", [True, False])
def test_a_wrong_hash_is_an_error_and_nothing_is_kept(server, target, lengths):
    server.content, server.lengths = CONTENT[:-1] + b"!", lengths
    with pytest.raises(InputError, match=rf"file.bin: the 300,000 bytes received have md5 \w+, not {MD5}"):
        get(server, target)
    assert left(target) == []


@pytest.mark.parametrize("lengths", [True, False])
def test_a_file_that_is_too_large_is_cut_off(server, target, lengths):
    server.lengths = lengths
    with pytest.raises(InputError, match=r"sends at least .* bytes where the file has at most 100,000"):
        get(server, target, max_bytes=100_000)
    assert left(target) == []


@pytest.mark.parametrize("code", [404, 403, 410])
def test_a_lasting_refusal_is_not_repeated(server, target, code):
    server.script = [(code,)] * 9
    with pytest.raises(InputError, match=rf"^{server.url}: the server answered {code}"):
        get(server, target)
    assert len(server.requests) == 1


def test_a_passing_refusal_is_repeated(server, target):
    server.script = [(503,), (429,)]
    get(server, target)
    assert target.read_bytes() == CONTENT
    server.script = [(503,)] * 9
    target.unlink()
    with pytest.raises(InputError, match=r"the server answered 503 .*, after 4 tries"):
        get(server, target)


def test_waits_grow(server, target, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(download_module.time, "sleep", waits.append)
    server.script = [(503,)] * 3
    download(Remote(server.url, MD5, 400_000), target, pause=0.5)
    assert waits == [0.5, 1.0, 2.0]


def test_nobody_listening_is_an_error_at_once(target):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        port = http.server_port
    with pytest.raises(InputError, match=r"cannot be reached \(ConnectionRefusedError"):
        download(Remote(f"http://127.0.0.1:{port}/x", MD5, 10), target, pause=100.0)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "/etc/passwd"])
def test_other_schemes_are_refused(target, url):
    with pytest.raises(InputError, match="only http and https"):
        download(Remote(url, MD5, 10_000), target)
    assert left(target) == []


def test_redirects_are_followed_to_http_only(server, target):
    server.script = [(302, "Location", "/elsewhere")]
    get(server, target)
    assert server.requests[1]["path"] == "/elsewhere"
    target.unlink()
    for place in ("file:///etc/passwd", "ftp://127.0.0.1/x"):
        server.script = [(302, "Location", place)]
        with pytest.raises(InputError, match=r"302|redirects"):
            get(server, target)
        assert not target.exists()


def test_a_redirect_from_https_to_http_is_refused():
    handler = download_module._SameSafety()
    request = download_module.urllib.request.Request("https://127.0.0.1/x")
    with pytest.raises(InputError, match=r"redirects to http://127.0.0.1/x, which is not as safe"):
        handler.redirect_request(request, None, 302, "Found", {}, "http://127.0.0.1/x")


def test_a_folder_that_cannot_be_written_is_an_output_error(server, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        get(server, tmp_path / "file" / "target.bin")


def test_hashes(tmp_path):
    (tmp_path / "a").write_bytes(CONTENT)
    assert hash_file(tmp_path / "a", "md5") == MD5
    assert (algorithm_of(MD5), algorithm_of(SHA256)) == ("md5", "sha256")
