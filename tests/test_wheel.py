"""The wheel builds, installs into an empty environment, and the demo runs from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "unpoison/py.typed" in names
    assert {"unpoison/report/web/page.html.j2", "unpoison/report/web/gallery.js"} <= set(names)
    in_source = {
        str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py") if path.is_file()
    }
    assert in_source <= set(names)
    assert all(name.startswith(("unpoison/", "unpoison-")) for name in names)


@pytest.mark.slow
def test_the_demo_runs_from_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    constraints = ROOT / "constraints.txt"
    run(
        scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--constraint", constraints, wheel, cwd=tmp_path,
    )  # fmt: skip
    result = json.loads(run(scripts / "unpoison", "demo", "--out", "demo", "--json", cwd=tmp_path))
    assert result["found"] >= 0.95
    assert (tmp_path / "demo" / "cleaned" / "report.html").is_file()
    version = run(scripts / "unpoison", "--version", cwd=tmp_path)
    assert wheel.name.split("-")[1] in version
