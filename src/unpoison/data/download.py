"""Downloading a file whose hash is known: resumable, bounded, and in place only once the hash is right."""

from __future__ import annotations

import hashlib
import http.client
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpoison.data.files import describe, open_regular, shown, writing
from unpoison.errors import InputError
from unpoison.events import Listener, Progress, ignore

TRIES = 4
PAUSE = 1.0
"""Seconds before the second try; each further wait is twice as long."""
TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as lost."""

_PIECE = 2**16
_PASSING_CODES = frozenset({408, 425, 429, 500, 502, 503, 504})
_LASTING = (ConnectionRefusedError,)
"""No answer that comes at once is worth waiting for: the next place should have its turn."""


@dataclass(frozen=True)
class Remote:
    """A file at an address, the md5 or sha256 that it must have, and the size it may not exceed."""

    url: str
    digest: str
    max_bytes: int


class _PassingError(Exception):
    """A failure that may be gone in a moment."""


class _TooLargeError(InputError):
    """What comes is not the file, so that its beginning is of no use either."""


def download(
    remote: Remote,
    target: Path,
    *,
    listener: Listener = ignore,
    timeout: float = TIMEOUT,
    pause: float = PAUSE,
) -> None:
    """Bring ``remote`` to ``target``, going on from what an interrupted download left in ``target``.part.

    A ``target`` that has the right hash already is left as it is.

    Raises:
        InputError: The address does not give the file: unreachable, too large, or another hash.
    """
    if target.is_file() and hash_file(target, algorithm_of(remote.digest)) == remote.digest:
        return
    part = _Part(target.with_name(f"{target.name}.part"))
    for attempt in range(1, TRIES + 1):
        try:
            _go_on(remote, part, listener=listener, timeout=timeout)
            break
        except _TooLargeError:
            part.forget()
            raise
        except _PassingError as error:
            if attempt == TRIES:
                raise InputError(f"{remote.url}: {error}, after {TRIES} tries") from error
            time.sleep(pause * 2 ** (attempt - 1))
    _check(remote, part)
    with writing(target.parent):
        part.path.replace(target)
        part.forget()


def algorithm_of(digest: str) -> str:
    """The name of the hash that gives digests of this length."""
    return "md5" if len(digest) == 32 else "sha256"


def hash_file(path: Path, algorithm: str) -> str:
    """The digest of a file, read piece by piece."""
    with open_regular(path, shown(str(path))) as stream:
        # md5 is what the publishers of old data give; it guards against damage more than against malice
        return hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


@dataclass(frozen=True)
class _Part:
    """The beginning of a file, and the tag by which the server knows whether it still has that file."""

    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def tag(self) -> str | None:
        return self._tag_path.read_text(encoding="latin-1") if self._tag_path.is_file() else None

    @property
    def _tag_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.etag")

    def start_over(self, tag: str | None) -> None:
        """Empty the file and remember whose beginning comes now."""
        with writing(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(b"")
            self._tag_path.unlink(missing_ok=True)
            if tag is not None and not tag.startswith("W/"):  # a weak tag cannot vouch for bytes
                self._tag_path.write_text(tag, encoding="latin-1")

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        self._tag_path.unlink(missing_ok=True)


class _SameSafety(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https only, and never from https down to http."""

    def redirect_request(self, req: urllib.request.Request, *args: Any) -> urllib.request.Request | None:
        new = super().redirect_request(req, *args)
        if new is not None and (
            new.type not in ("http", "https") or (req.type, new.type) == ("https", "http")
        ):
            raise InputError(
                f"{req.full_url}: redirects to {shown(new.full_url)}, which is not as safe; not followed"
            )
        return new


def _opener() -> urllib.request.OpenerDirector:
    # urllib's own also opens file: and ftp: addresses
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _SameSafety(),
    ):
        opener.add_handler(handler)
    return opener


def _go_on(remote: Remote, part: _Part, *, listener: Listener, timeout: float) -> None:
    """One request: from where ``part`` ends if the server can, else from the beginning."""
    if urllib.parse.urlsplit(remote.url).scheme not in ("http", "https"):
        raise InputError(f"{shown(remote.url)}: only http and https addresses are fetched")
    request = urllib.request.Request(remote.url, headers={"User-Agent": "unpoison"})
    before = part.size
    if before:
        request.add_header("Range", f"bytes={before}-")
        if part.tag is not None:
            request.add_header("If-Range", part.tag)
    try:
        with _opener().open(request, timeout=timeout) as response:
            _receive(remote, part, response, listener)
    except urllib.error.HTTPError as error:
        with error:
            _judge_answer(remote, part, error)
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        words = describe(reason) if isinstance(reason, BaseException) else str(reason)
        if _is_passing(reason):
            raise _PassingError(words) from error
        raise InputError(f"{remote.url}: cannot be reached ({words})") from error


def _is_passing(reason: object) -> bool:
    if isinstance(reason, (TimeoutError, ConnectionError, http.client.HTTPException)):
        return not isinstance(reason, _LASTING)
    return False


def _judge_answer(remote: Remote, part: _Part, error: urllib.error.HTTPError) -> None:
    """Return if the part is the whole file already; raise otherwise."""
    if error.code == 416:  # nothing after the part: it is whole, or it is the beginning of another file
        total = re.fullmatch(r"bytes \*/(\d+)", error.headers.get("Content-Range", ""))
        if total is not None and int(total[1]) == part.size:
            return
        part.start_over(None)
        raise _PassingError("the file changed at its address")
    words = f"the server answered {error.code} {shown(str(error.reason))}"
    if error.code in _PASSING_CODES:
        raise _PassingError(words) from error
    raise InputError(f"{remote.url}: {words}") from error


def _receive(remote: Remote, part: _Part, response: Any, listener: Listener) -> None:
    before = part.size
    if response.status != 206:
        before = 0
        part.start_over(response.headers.get("ETag"))
    elif not response.headers.get("Content-Range", "").startswith(f"bytes {before}-"):
        part.start_over(None)
        raise _PassingError("the server sent another piece than was asked for")
    length = response.headers.get("Content-Length", "")
    total = before + int(length) if length.isdecimal() else None
    _check_size(remote, total or 0)
    done = before
    with writing(part.path.parent), part.path.open("ab") as stream:
        while piece := _piece(response):
            done += len(piece)
            _check_size(remote, done)
            stream.write(piece)
            listener(Progress(f"download {part.path.stem}", done, total or done, resumed=before))
    if total is not None and done < total:
        raise _PassingError(f"the connection ended after {done:,} of {total:,} bytes")


def _piece(response: Any) -> bytes:
    try:
        return bytes(response.read(_PIECE))
    except (OSError, http.client.HTTPException) as error:
        raise _PassingError(f"the connection was lost ({describe(error)})") from error


def _check_size(remote: Remote, size: int) -> None:
    if size > remote.max_bytes:
        raise _TooLargeError(
            f"{remote.url}: sends at least {size:,} bytes where the file has at most {remote.max_bytes:,}; "
            "it is another file"
        )


def _check(remote: Remote, part: _Part) -> None:
    algorithm = algorithm_of(remote.digest)
    found = hash_file(part.path, algorithm)
    if found != remote.digest:
        size = part.size
        part.forget()
        raise InputError(
            f"{remote.url}: the {size:,} bytes received have {algorithm} {found}, not {remote.digest}; "
            "they were removed. Try again; if this stays, the file at this address is another one"
        )
