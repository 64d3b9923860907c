from __future__ import annotations

import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from unpoison.data.archives import Limits, open_zip, read_maybe_gz, tar_members
from unpoison.errors import InputError, OutputError
from unpoison.events import Progress

LIMITS = Limits(total_bytes=10_000_000)
ESCAPES = ["/etc/x", "../x", "a/../../x", "..", "a\\..\\x", "\\\\server\\x", "C:x", "c:/x", "a\\b"]


def tar(path: Path, *members: tarfile.TarInfo | tuple[str, bytes], mode: str = "w:gz", **options) -> Path:
    with tarfile.open(path, mode, **options) as archive:
        for member in members:
            info, content = (member, b"") if isinstance(member, tarfile.TarInfo) else (None, member[1])
            if info is None:
                info = tarfile.TarInfo(member[0])
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def make_zip(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], method: int = 8) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def read_tar(path: Path, limits: Limits = LIMITS) -> dict[str, bytes]:
    return {member.name: member.read() for member in tar_members(path, path.name, limits=limits)}


def read_zip(path: Path, limits: Limits = LIMITS) -> dict[str, bytes]:
    with open_zip(path, path.name, limits=limits) as archive:
        return {name: archive.read(name) for name in archive.names}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_tar_members_come_in_order(tmp_path, mode, form):
    folder = special("top", tarfile.DIRTYPE)
    content = np.random.default_rng(0).bytes(1_100_000)
    long = "top/" + "b" * 90
    path = tar(
        tmp_path / "a.tar", folder, ("top/a", content), (long, b""), ("top/c", b"c"), mode=mode, format=form
    )
    assert read_tar(path) == {"top/a": content, long: b"", "top/c": b"c"}


def test_tar_members_need_not_be_read(tmp_path):
    path = tar(tmp_path / "a.tgz", ("a", bytes(1000)), ("b", b"b"))
    assert [member.name for member in tar_members(path, "a", limits=LIMITS)] == ["a", "b"]
    assert [m.read() for m in tar_members(path, "a", limits=LIMITS) if m.name == "b"] == [b"b"]


def test_progress_counts_the_packed_bytes(tmp_path):
    events: list[Progress] = []
    path = tar(tmp_path / "a.tgz", ("a", bytes(1000)), ("b", b"b"))
    list(tar_members(path, "a.tgz", limits=LIMITS, listener=events.append))
    assert [(e.stage, e.total) for e in events] == [("read a.tgz", path.stat().st_size)] * 2
    assert all(0 < event.done <= event.total for event in events)
    events.clear()
    path = make_zip(tmp_path / "a.zip", ("a", bytes(1000)), ("b", b"b"))
    with open_zip(path, "a.zip", limits=LIMITS, listener=events.append) as archive:
        for name in archive.names * 2:
            archive.read(name)
    assert [event.done for event in events] == sorted(event.done for event in events)
    assert events[1].done == events[1].total == events[3].done


def test_saving_a_member(tmp_path):
    path = tar(tmp_path / "a.tgz", ("a", b"one"))
    (member,) = tar_members(path, "a", limits=LIMITS)
    assert member.name == "a"
    for member in tar_members(path, "a", limits=LIMITS):
        member.save(tmp_path / "new" / "a")
    assert (tmp_path / "new" / "a").read_bytes() == b"one"
    for member in tar_members(path, "a", limits=LIMITS):
        with pytest.raises(OutputError, match="File exists"):
            member.save(tmp_path / "new" / "a")


@pytest.mark.parametrize("name", ESCAPES)
def test_paths_out_of_the_archive_are_refused(tmp_path, name):
    for read, path in (
        (read_tar, tar(tmp_path / "a.tgz", ("fine", b""), (name, b"x"))),
        (read_zip, make_zip(tmp_path / "a.zip", ("fine", b""), (name, b"x"))),
    ):
        with pytest.raises(InputError, match=r"a\.\w+: the member .* leads out of the archive"):
            read(path)


def test_a_zip_name_with_a_nul_is_refused(tmp_path):
    path = make_zip(tmp_path / "a.zip", ("fine.txt#evil", b"x"))
    path.write_bytes(path.read_bytes().replace(b"#", b"\0"))
    with pytest.raises(InputError, match="leads out of the archive"):
        read_zip(path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["fine", "/etc/passwd", "../.."])
def test_tar_links_are_refused(tmp_path, kind, target):
    path = tar(tmp_path / "a.tgz", ("fine", b"x"), special("link", kind, target))
    with pytest.raises(InputError, match=r"a.tgz: 'link' is a link"):
        read_tar(path)


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z"])
def test_tar_devices_and_unknown_kinds_are_refused(tmp_path, kind):
    path = tar(tmp_path / "a.tgz", special("device", kind))
    with pytest.raises(InputError, match=r"'device' is neither a plain file nor a folder"):
        read_tar(path)


def test_a_sparse_tar_member_is_refused(tmp_path):
    info = tarfile.TarInfo("sparse")
    info.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": "9" * 9}
    path = tar(tmp_path / "a.tgz", info, format=tarfile.PAX_FORMAT)
    with pytest.raises(InputError, match=r"'sparse' is neither"):
        read_tar(path)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_zip_links_and_devices_are_refused(tmp_path, kind):
    info = zipfile.ZipInfo("link")
    info.external_attr = (kind | 0o777) << 16
    with pytest.raises(InputError, match=r"a.zip: 'link' is (a link|neither)"):
        read_zip(make_zip(tmp_path / "a.zip", ("fine", b""), (info, b"/etc/passwd")))


def test_unusual_zip_packing_is_refused(tmp_path):
    with pytest.raises(InputError, match="encrypted or packed in an unusual way"):
        read_zip(make_zip(tmp_path / "a.zip", ("a", b"x"), method=zipfile.ZIP_LZMA))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("again", ["a", "./a", "a/"])
def test_duplicates_are_refused(tmp_path, again):
    with pytest.raises(InputError, match=r"occurs more than once"):
        read_tar(tar(tmp_path / "a.tgz", ("a", b"1"), (again, b"2")))
    with pytest.raises(InputError, match=r"occurs more than once"):
        read_zip(make_zip(tmp_path / "a.zip", ("a", b"1"), (again, b"2" if again != "a/" else b"")))


def test_names_that_differ_in_case_are_two(tmp_path):
    assert set(read_tar(tar(tmp_path / "a.tgz", ("a", b"1"), ("A", b"2")))) == {"a", "A"}
    assert set(read_zip(make_zip(tmp_path / "a.zip", ("a", b"1"), ("A", b"2")))) == {"a", "A"}


def test_too_many_members_are_refused(tmp_path):
    names = [(f"{i}", b"") for i in range(11)]
    few = Limits(total_bytes=100_000, members=10)
    assert len(read_tar(tar(tmp_path / "a.tgz", *names[:10]), few)) == 10
    with pytest.raises(InputError, match="more than 10 members"):
        read_tar(tar(tmp_path / "a.tgz", *names), few)
    with pytest.raises(InputError, match="more than 10 members"):
        read_zip(make_zip(tmp_path / "a.zip", *names), few)


@pytest.mark.parametrize("mode", ["w:gz", "w:xz"])
@pytest.mark.parametrize("read", [True, False])
def test_a_tar_bomb_is_stopped_while_it_is_unpacked(tmp_path, mode, read):
    """Also one whose large member nobody asks for."""
    path = tar(tmp_path / "a.tar", ("bomb", bytes(20_000_000)), ("b", b""), mode=mode)
    assert path.stat().st_size < 50_000
    with pytest.raises(InputError, match=r"a.tar: unpacks to more than 10,000,000 bytes"):
        read_tar(path) if read else list(tar_members(path, "a.tar", limits=LIMITS))


def test_a_zip_bomb_is_stopped_while_it_is_unpacked(tmp_path):
    path = make_zip(tmp_path / "a.zip", *[(f"{i}", bytes(3_000_000)) for i in range(4)])
    assert path.stat().st_size < 50_000
    with pytest.raises(InputError, match=r"a.zip: unpacks to more than 10,000,000 bytes"):
        read_zip(path)


def test_a_zip_directory_that_lies_about_sizes_does_not_get_round_the_limit(tmp_path):
    path = make_zip(tmp_path / "a.zip", ("bomb", bytes(20_000_000)))
    data = path.read_bytes()
    path.write_bytes(data.replace((20_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little")))
    with suppress(InputError):
        assert len(read_zip(path)["bomb"]) <= 10_000_000


def test_a_tar_header_that_asks_for_much_memory_is_refused(tmp_path):
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 8_000_000
    path = tmp_path / "a.tgz"
    path.write_bytes(gzip.compress(info.tobuf() + b" " * 8_000_000 + bytes(1024)))
    with pytest.raises(InputError, match=r"a header in it says it takes 8,\d+,\d+ bytes"):
        read_tar(path)


def test_an_xz_file_that_asks_for_much_memory_is_refused(tmp_path):
    plain = tar(tmp_path / "a.tar", ("a", b"x"), mode="w").read_bytes()
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**20}]
    packed = bytearray(lzma.compress(plain, filters=filters))
    # block header: size, flags, filter id, size of its properties, the dictionary's size, padding, checksum
    assert packed[12:17] == b"\x02\x00\x21\x01\x10"
    packed[16] = 36  # 2 GiB
    packed[20:24] = zlib.crc32(packed[12:20]).to_bytes(4, "little")
    (tmp_path / "a.tar.xz").write_bytes(packed)
    with pytest.raises(InputError, match=r"Memory usage limit"):
        read_tar(tmp_path / "a.tar.xz")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_truncated_tar_is_an_input_error(tmp_path, mode):
    content = np.random.default_rng(0).bytes(400_000)
    path = tar(tmp_path / "a.tar", ("a", content[:200_000]), ("b", content[200_000:]), mode=mode)
    path.write_bytes(path.read_bytes()[:250_000])
    with pytest.raises(InputError, match=r"a.tar"):
        read_tar(path)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"hello" * 500, b"\x1f\x8b", b"\xfd7zXZ\x00", bytes(99)]
)
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    for read in (read_tar, read_zip):
        with pytest.raises(InputError, match=r"^a cannot be read .* damaged or of another form"):
            read(tmp_path / "a")


@pytest.mark.parametrize("form", ["tar", "tgz", "txz", "zip"])
def test_damage_anywhere_gives_content_or_an_input_error(tmp_path, form):
    members = [(f"top/{i}", bytes([i]) * 700) for i in range(5)]
    mode = {"tar": "w", "tgz": "w:gz", "txz": "w:xz"}.get(form)
    path = make_zip(tmp_path / "a", *members) if mode is None else tar(tmp_path / "a", *members, mode=mode)
    data = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    rng = np.random.default_rng(0)
    for _ in range(150):
        damaged = data.copy()
        damaged[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
        path.write_bytes(damaged.tobytes())
        with suppress(InputError):
            read_zip(path) if mode is None else read_tar(path)


def test_gz_or_plain(tmp_path):
    (tmp_path / "plain").write_bytes(b"content")
    (tmp_path / "packed").write_bytes(gzip.compress(b"content"))
    for name in ("plain", "packed"):
        assert read_maybe_gz(tmp_path / name, name, max_bytes=7) == b"content"
        with pytest.raises(InputError, match=rf"{name}: holds more than the 6 bytes it should"):
            read_maybe_gz(tmp_path / name, name, max_bytes=6)
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(10_000_000)))
    with pytest.raises(InputError, match="holds more than the 1,000"):
        read_maybe_gz(tmp_path / "bomb", "bomb", max_bytes=1000)
    (tmp_path / "cut").write_bytes(gzip.compress(b"content")[:-3])
    with pytest.raises(InputError, match="cut cannot be read"):
        read_maybe_gz(tmp_path / "cut", "cut", max_bytes=1000)


def test_a_link_is_not_opened(tmp_path):
    tar(tmp_path / "a.tgz", ("a", b"x"))
    (tmp_path / "link").symlink_to(tmp_path / "a.tgz")
    with pytest.raises(InputError, match="link cannot be opened"):
        read_tar(tmp_path / "link")
