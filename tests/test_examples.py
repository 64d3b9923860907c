"""The files in examples/ and the commands of docs/pipelines.md, run as they stand."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.builders import environment, planted, write_form
from schemas import stored_schema

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW, STAGES, PAGE = (
    ROOT / "examples/github-action.yml",
    ROOT / "examples/dvc.yaml",
    ROOT / "docs/pipelines.md",
)

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the examples are for bash")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with poisoned images of digits in ``data/train``, and the program on the path."""
    folder, _ = write_form("folder", tmp_path, planted())
    (tmp_path / "repository" / "data").mkdir(parents=True)
    folder.rename(tmp_path / "repository" / "data" / "train")
    program = tmp_path / "bin" / "unpoison"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m unpoison "$@"\n')
    program.chmod(0o755)
    return tmp_path / "repository"


def shell(script: str, work: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """As GitHub runs a step."""
    path = os.pathsep.join([str(work.parent / "bin"), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=work,
        env=environment(PATH=path, **variables),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_github_action(work: Path) -> None:
    steps = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["unpoison"]["steps"]
    (script,) = (step["run"] for step in steps if "unpoison clean" in step.get("run", ""))
    page = work.parent / "step_summary"
    page.touch()
    done = shell(script, work, GITHUB_STEP_SUMMARY=str(page))
    assert (done.returncode, done.stderr) == (1, ""), "5% were planted, 1% is allowed"
    assert page.read_text(encoding="utf-8").startswith("## unpoison: 12 of 240 samples (5.0%) look planted")
    (kept,) = (step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", ""))
    assert all((work / name).is_file() for name in kept.split())
    (uploaded,) = (step["with"]["sarif_file"] for step in steps if "upload-sarif" in step.get("uses", ""))
    results = json.loads((work / uploaded).read_bytes())["runs"][0]["results"]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
    assert len(uris) == 12
    assert all((work / uri.replace("%20", " ")).is_file() for uri in uris)


def test_the_dvc_stage(work: Path) -> None:
    stage = yaml.safe_load(STAGES.read_text(encoding="utf-8"))["stages"]["clean"]
    assert all((work / name).exists() for name in stage["deps"])
    before = {path: path.stat() for path in (work / "data").rglob("*.png")}
    done = shell(stage["cmd"], work)
    assert (done.returncode, done.stderr) == (0, "")
    outputs = [
        name if isinstance(name, str) else next(iter(name)) for name in stage["outs"] + stage["metrics"]
    ]
    assert sorted(path.name for path in work.iterdir()) == sorted(["data", *outputs])
    assert json.loads((work / "cleaned.json").read_bytes())["result"]["n_removed"] == 12
    assert {path: path.stat().st_nlink for path in before} == dict.fromkeys(before, 1)


def test_the_commands_of_the_page(work: Path) -> None:
    first, again = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = shell(first, work)
    assert (done.returncode, done.stderr) == (1, "")
    written = (work / "summary.md").read_bytes()
    assert (work / "unpoison.sarif").is_file()
    (work / "summary.md").unlink()
    done = shell(again, work)
    assert (done.returncode, done.stderr) == (0, "")
    assert (work / "summary.md").read_bytes() == written


def valid(document: Any, mark: str) -> bool:
    jsonschema = pytest.importorskip("jsonschema")
    return bool(jsonschema.Draft7Validator(stored_schema(mark)).is_valid(document))


def test_the_workflow_is_as_github_has_them() -> None:
    mark = "automating-your-workflow-with-github-actions/workflow-syntax-for-github-actions"
    document = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    document["on"] = document.pop(True)  # what "on" is in YAML
    assert valid(document, mark)
    assert not valid({**document, "permissions": {"contents": "some"}}, mark)


def test_the_stages_are_as_dvc_has_them() -> None:
    document = yaml.safe_load(STAGES.read_text(encoding="utf-8"))
    assert valid(document, '"title": "dvc.yaml"')
    document["stages"]["clean"]["outputs"] = []
    assert not valid(document, '"title": "dvc.yaml"')
