from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas import stored_schema
from unpoison.outputs import manifest, sarif
from unpoison.outputs import record as records

from .builders import NASTY, RUN, LineOrigin, make_dataset, make_result


def document(dataset: Any = None, *, source: Path | None = None, **changes: Any) -> Any:
    dataset = dataset or make_dataset()
    result = make_result(dataset, **changes)
    record = records.build(dataset, result, run=RUN)
    built = sarif.build(record, manifest.build(dataset, result), source=source)
    return json.loads(records.dump(built))


def shaped(form: str, sources: list[str]) -> Any:
    """A dataset of that form whose samples stand at these places."""
    dataset = make_dataset(
        len(sources), ids=[f"id {i}" for i in range(len(sources))], origin=LineOrigin(form=form)
    )
    object.__setattr__(dataset, "sources", tuple(sources))
    return dataset


def physical(result: Any) -> Any:
    return result["locations"][0].get("physicalLocation")


# --- the standard ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema() -> Any:
    return stored_schema("/Schemata/sarif-schema-2.1.0.json")


def odd_names() -> Any:
    return make_dataset(names=[name or "none" for name in NASTY], name=NASTY[0])


@pytest.mark.parametrize(
    ("dataset", "changes"),
    [
        (make_dataset, {}),
        (make_dataset, {"removed": []}),
        (odd_names, {"removed": range(22)}),
        (lambda: shaped("folder", [f"a b/{i}é.png" for i in range(9)]), {"source": Path("data")}),
        (lambda: shaped("csv", [f"t.csv:{i + 2}" for i in range(9)]), {"source": Path("t.csv")}),
    ],
    ids=["plain", "nothing found", "odd names", "folder", "table"],
)
def test_it_is_as_the_standard_has_it(dataset: Any, changes: Any, schema: Any, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft7Validator(schema).validate(document(dataset(), **changes))


def test_the_schema_would_find_a_mistake(schema: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    wrong = document()
    wrong["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(wrong)


def test_it_says_what_github_asks_for() -> None:
    made = document(shaped("folder", [f"cat/{i}.png" for i in range(9)]), source=Path("data"))
    assert (made["version"], made["$schema"].rpartition("/")[2]) == ("2.1.0", "sarif-schema-2.1.0.json")
    (run,) = made["runs"]
    rules = run["tool"]["driver"]["rules"]
    for rule in rules:
        assert rule["id"]
        assert all(rule[part]["text"] for part in ("shortDescription", "fullDescription", "help"))
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert not physical(result)["artifactLocation"]["uri"].startswith(("/", "file:", "."))
        assert physical(result)["region"]["startLine"] >= 1
        assert result["partialFingerprints"]["primaryLocationLineHash"]


# --- the findings ------------------------------------------------------------------------------------------


def test_one_result_a_removed_sample_the_worst_first() -> None:
    dataset = make_dataset()
    (run,) = document(dataset)["runs"]
    assert [result["locations"][0]["logicalLocations"][0]["name"] for result in run["results"]] == [
        "pets/0006", "pets/0003", "pets/0000",
    ]  # fmt: skip
    ranks = [result["rank"] for result in run["results"]]
    assert ranks == sorted(ranks, reverse=True)
    assert 50 <= ranks[-1] <= ranks[0] <= 100
    assert (
        run["results"][2]["message"]["text"] == "Looks planted: labelled 'cat', called 'dog', suspicion 0.50."
    )
    assert run["properties"] == {"samples": 40, "removed": 3, "fingerprint": dataset.fingerprint}
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_nothing_found_is_no_results() -> None:
    assert document(removed=[])["runs"][0]["results"] == []


def test_samples_that_are_called_what_they_are() -> None:
    results = document(removed=[0, 1])["runs"][0]["results"]
    by_label = {result["properties"]["label"]: result for result in results}
    assert by_label["cat"]["ruleId"] == "other-label"
    assert by_label["dog"]["ruleId"] == "own-label"
    assert "called" not in by_label["dog"]["message"]["text"]


def test_the_cap_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 2)
    (run,) = document(removed=[0, 3, 6, 9])["runs"]
    assert [r["locations"][0]["logicalLocations"][0]["name"] for r in run["results"]] == [
        "pets/0009",
        "pets/0006",
    ]
    (notice,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"].startswith("2 of 4 removed samples are listed")
    assert run["properties"]["removed"] == 4


def test_ten_thousand_removed_samples_stay_small() -> None:
    dataset = make_dataset(12_000)
    made = document(dataset, removed=range(10_000))
    assert len(made["runs"][0]["results"]) == sarif.MAX_RESULTS == 5000
    assert len(json.dumps(made)) < 10_000_000


def test_a_finding_is_known_again_by_its_sample() -> None:
    def known(dataset: Any) -> list[str]:
        results = document(dataset)["runs"][0]["results"]
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]

    dataset = make_dataset()
    assert known(dataset) == [f"{dataset.sha256[i][:16]}:1" for i in (6, 3, 0)]
    object.__setattr__(dataset, "sha256", ("0" * 64,) * 40)
    assert known(dataset) == ["0" * 16 + f":{i}" for i in (1, 2, 3)]


@pytest.mark.parametrize("name", NASTY, ids=lambda name: repr(name[:20]))
def test_names_make_no_links_and_no_escape_codes(name: str) -> None:
    dataset = make_dataset(names=(name or "none", "[click](http://e.example)", "bird"))
    text = document(dataset)["runs"][0]["results"][0]["message"]["text"]
    assert r"called '\[click\](http://e.example)'" in text
    assert text.isprintable()
    assert len(text) < 700


# --- places ------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_images_by_their_path_below_the_working_folder(here: Path) -> None:
    folder = here / "data" / "my photos"
    folder.mkdir(parents=True)
    dataset = shaped(
        "folder", ["stop/a b#1?.png", "go/é.png", "stop/100%.png", "go/2.png", "go/3.png", "go/4.png"]
    )
    for source in (Path("data/my photos"), folder, Path("data/../data/my photos/")):
        results = document(dataset, source=source, removed=[0, 1, 2])["runs"][0]["results"]
        assert {physical(result)["artifactLocation"]["uri"] for result in results} == {
            "data/my%20photos/stop/a%20b%231%3F.png",
            "data/my%20photos/go/%C3%A9.png",
            "data/my%20photos/stop/100%25.png",
        }
        assert all(physical(r)["artifactLocation"]["uriBaseId"] == "%SRCROOT%" for r in results)
        assert all(physical(r)["region"] == {"startLine": 1} for r in results)


@pytest.mark.parametrize("elsewhere", ["..", "."])
def test_a_source_outside_is_named_without_the_path_to_it(
    elsewhere: str, here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = tmp_path_factory.mktemp("photos") if elsewhere == ".." else here
    made = document(shaped("folder", [f"cat/{i}.png" for i in range(6)]), source=source, removed=[0])
    (run,) = made["runs"]
    assert physical(run["results"][0])["artifactLocation"] == {
        "uri": f"{source.name}/cat/0.png", "uriBaseId": "%SOURCE%",
    }  # fmt: skip
    assert set(run["originalUriBaseIds"]) == {"%SOURCE%"}
    assert str(source.parent) not in json.dumps(made)


@pytest.mark.parametrize(
    ("form", "places", "line"),
    [
        ("csv", "mails:1.csv:17", 17),
        ("tsv", "mails.tsv:2", 2),
        ("parquet", "mails.parquet[16]", 17),
        ("npz", "train.npz[0]", 1),
    ],
)
def test_rows_of_tables_by_their_number(form: str, places: str, line: int, here: Path) -> None:
    name = places.rpartition(":")[0] if form in ("csv", "tsv") else places.partition("[")[0]
    dataset = shaped(form, [places, *(f"{name}:{90 + i}" for i in range(5))])
    (result,) = document(dataset, source=here / "data" / name, removed=[0])["runs"][0]["results"]
    assert physical(result) == {
        "artifactLocation": {"uri": f"data/{name.replace(':', '%3A')}", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": line},
    }
    assert result["locations"][0]["logicalLocations"] == [{"name": "id 0", "fullyQualifiedName": places}]


@pytest.mark.parametrize(("form", "source"), [("npz", None), ("hub", Path("signs"))])
def test_data_without_a_file_has_no_place_in_one(form: str, source: Path | None) -> None:
    dataset = shaped(form, [f"signs[train][{i}]" for i in range(6)])
    (result,) = document(dataset, source=source, removed=[0])["runs"][0]["results"]
    assert physical(result) is None
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "signs[train][0]"


def test_the_same_run_gives_the_same_document() -> None:
    assert np.array_equal(json.dumps(document()), json.dumps(document()))
