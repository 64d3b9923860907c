from __future__ import annotations

import os
from pathlib import Path

import pytest

from unpoison.data.named import imagenette
from unpoison.data.named.catalog import CATALOG
from unpoison.errors import InputError
from unpoison.events import Progress, ignore

from .builders import SMALL, imagenette_members, tar

SPEC = SMALL["imagenette"]


def convert(given: Path, folder: Path, spec=SPEC, listener=ignore):
    return imagenette.convert(given, folder, spec=spec, listener=listener)


def unpacked(root: Path, members: dict[str, bytes]) -> Path:
    for name, content in members.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def expected(members: dict[str, bytes], top: str) -> dict[str, bytes]:
    names = {name.split()[0]: name for name in SPEC.class_names}
    found = {}
    for path, content in members.items():
        parts = path.removeprefix(f"{top}/").split("/")
        if len(parts) == 3:
            found["/".join([parts[0], names[parts[1]], parts[2]])] = content
    return found


@pytest.mark.parametrize(
    ("mode", "top"), [("w:gz", "imagenette2-320"), ("w:xz", "imagenette112"), ("w", "./x")]
)
def test_an_archive_becomes_folders_named_after_their_content(tmp_path, written, mode, top):
    members = imagenette_members(top)
    events: list[Progress] = []
    (source,) = convert(tar(tmp_path / "a.tar", members, mode), written, listener=events.append)
    assert files(written) == expected(members, top)
    assert len(files(written)) == 40
    assert (written / "val" / "n03028079 church" / "n03028079_1.JPEG").is_file()
    assert (source.name, source.official) == ("a.tar", False)
    assert events


def test_a_folder_is_copied(tmp_path, written):
    members = imagenette_members("top")
    root = unpacked(tmp_path, members) / "top"
    events: list[Progress] = []
    (source,) = convert(root, written, listener=events.append)
    assert files(written) == expected(members, "top")
    assert not source.official
    assert events[-1].done == events[-1].total
    (again,) = convert(root, written)
    assert again.sha256 == source.sha256
    (root / "train" / "n01440764" / "n01440764_0.JPEG").write_bytes(b"other")
    assert convert(root, written)[0].sha256 != source.sha256


def test_the_known_names_are_found_in_a_folder(tmp_path, written):
    tar(tmp_path / "imagenette2-160.tgz", imagenette_members())
    convert(tmp_path, written)
    assert len(files(written)) == 40


def test_another_number_of_images_is_refused(tmp_path, written):
    members = imagenette_members()
    members.pop("imagenette2-320/val/n01440764/n01440764_0.JPEG")
    with pytest.raises(
        InputError, match=r"19 test images found where there are 20; give imagenette2-320.tgz"
    ):
        convert(tar(tmp_path / "a.tgz", members), written)


def test_a_class_without_images_is_refused(tmp_path, written):
    moved = {name.replace("n01440764/", "n03888257/"): data for name, data in imagenette_members().items()}
    with pytest.raises(InputError, match=r"no train image of 'n01440764 tench' found"):
        convert(tar(tmp_path / "a.tgz", moved), written)


def test_only_images_of_known_classes_are_taken(tmp_path, written):
    members = {
        **imagenette_members(),
        "imagenette2-320/train/n99999999/n99999999_0.JPEG": b"unknown class",
        "imagenette2-320/train/n01440764/run.sh": b"no image",
        "imagenette2-320/train/n01440764/.hidden.JPEG": b"hidden",
        "imagenette2-320/train/n01440764/deep/er.JPEG": b"deeper",
    }
    convert(tar(tmp_path / "a.tgz", members), written)
    assert len(files(written)) == 40


def test_an_archive_that_reaches_out_is_refused(tmp_path, written):
    members = {**imagenette_members(), "imagenette2-320/../../train/n01440764/x.JPEG": b"out"}
    with pytest.raises(InputError, match="leads out of the archive"):
        convert(tar(tmp_path / "a.tgz", members), written)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="this system has no links")
def test_links_in_a_folder_are_not_followed(tmp_path, written):
    root = unpacked(tmp_path, imagenette_members("top")) / "top"
    image = root / "train" / "n01440764" / "n01440764_0.JPEG"
    image.unlink()
    image.symlink_to("/etc/passwd")
    with pytest.raises(InputError, match=r"n01440764_0.JPEG cannot be opened"):
        convert(root, written)


@pytest.mark.slow
def test_the_real_one(written, imagenette_112):
    convert(imagenette_112, written, spec=CATALOG["imagenette"])
    assert sum(1 for _ in (written / "train").glob("*/*")) == 9_469
    assert sum(1 for _ in (written / "val").glob("*/*")) == 3_925
