from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import unpoison
from unpoison.core.expansion import Measuring
from unpoison.data.load import LoadOptions, load
from unpoison.errors import InputError
from unpoison.events import Progress
from unpoison.learners.choose import LearnerChoice
from unpoison.measuring import MeasureOptions, measure, measuring_for, read_sets

QUICK = {"repeats": 4}


def blobs(n: int, *, seed: int = 0, flipped: bool = False, gap: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    return rng.normal(size=(n, 4)) + gap * labels[:, None], 1 - labels if flipped else labels


# --- from Python -------------------------------------------------------------------------------------------


def test_flipped_labels_are_incompatible_and_more_of_the_same_is_not() -> None:
    clean, more, flipped = blobs(60), blobs(60, seed=1), blobs(90, seed=2, flipped=True)
    bad = unpoison.compatibility(None, clean, flipped, 0.5, **QUICK)
    assert bad.decision == "incompatible"
    assert bad.repeats_needed is not None
    low, high = bad.difference.interval(0.95)
    assert 0 < low < bad.difference.mean < high
    assert unpoison.compatibility(None, clean, more, **QUICK).decision != "incompatible"


def test_an_error_with_its_interval() -> None:
    hard = blobs(40, gap=0.6)
    alone = unpoison.expansion_error(LogisticRegression(), hard, alpha=0.25, repeats=6)
    low, high = alone.interval(0.9)
    assert 0 < low < alone.mean < high < 0.6
    wider = alone.interval(0.99)
    assert wider[0] < low < high < wider[1]
    flipped = unpoison.expansion_error(LogisticRegression(), hard, given=blobs(40, flipped=True), repeats=6)
    assert flipped.mean > alone.mean


def test_a_matrix_of_named_sets() -> None:
    sets = {"a": blobs(40), "b": blobs(40, seed=1), "flipped": blobs(60, flipped=True)}
    matrix = unpoison.compatibility_matrix(GaussianNB(), sets, **QUICK)
    assert set(matrix) == {(s, t) for s in sets for t in sets if s != t}
    assert matrix["a", "flipped"].decision == "incompatible"
    pair = unpoison.compatibility(GaussianNB(), sets["a"], sets["flipped"], **QUICK)
    assert pair.decision == "incompatible"


def test_labels_of_any_kind_name_the_same_classes() -> None:
    """Of each set by itself they would be numbered differently."""
    names = np.array(["ant", "bee", "cat"])
    first, second = (np.arange(40) % 2, np.arange(40) % 2 + 1)
    rows = np.random.default_rng(0).normal(size=(40, 2)) / 10
    with_names = unpoison.compatibility(
        None,
        (rows + first[:, None], names[first]),
        (rows + second[:, None], names[second].astype(object)),
        **QUICK,
    )
    with_numbers = unpoison.compatibility(
        None, (rows + first[:, None], first.tolist()), (rows + second[:, None], second.tolist()), **QUICK
    )
    assert with_names == with_numbers
    assert with_names.given.mean < 0.05


@pytest.mark.parametrize("form", ["images", "sparse", "list", "names of learners"])
def test_every_form_of_features(form: str) -> None:
    X, y = blobs(40)
    learner: Any = None
    if form == "images":
        X = np.clip(60 * X[:, :, None, None].repeat(4, axis=2), 0, 255).astype(np.uint8)
    elif form == "sparse":
        X = sparse.csr_array(X)
    elif form == "list":
        X = X.tolist()
    else:
        learner = "forest"
    assert unpoison.expansion_error(learner, (X, y), given=(X, y), repeats=2).mean < 0.2


def test_texts_through_a_pipeline() -> None:
    y = np.arange(30) % 2
    texts = [f"word {i} {'good' if label else 'bad'}" for i, label in enumerate(y.tolist())]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    assert unpoison.expansion_error(model, (texts, y), repeats=2).mean < 0.2


def test_a_network(request: pytest.FixtureRequest) -> None:
    torch = pytest.importorskip("torch")

    def build(shape: tuple[int, ...], n_classes: int) -> Any:
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), n_classes))

    X, y = blobs(40)
    found = unpoison.expansion_error(build, (X.astype(np.float32), y), repeats=2, epochs=20)
    assert found.mean < 0.2


def test_seeds_and_workers() -> None:
    hard = {"a": blobs(60, seed=1, gap=0.6), "b": blobs(60, seed=2, gap=0.6)}
    one, again, several, other = (
        unpoison.compatibility_matrix(None, hard, **QUICK, seed=seed, workers=workers)
        for seed, workers in ((1, 1), (1, 1), (1, 2), (2, 1))
    )
    assert one == again == several
    assert one != other


def test_epochs_that_are_asked_for_are_kept_to() -> None:
    assert (measuring_for(epochs=None).epochs, measuring_for(epochs=None).min_steps) == (10, 300)
    assert (measuring_for(epochs=3).epochs, measuring_for(epochs=3).min_steps) == (3, 0)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (blobs(10), (blobs(10)[0][:5], blobs(10)[1]), r"the set 'T' has features of shape \(5, 4\)"),
        (blobs(10), (blobs(10)[0][:, :3], blobs(10)[1]), r"different shapes: \{'S': \(4,\), 'T': \(3,\)\}"),
        (blobs(10), (np.empty((0, 4)), []), "the set 'T' is empty"),
        (
            blobs(10),
            (blobs(10)[0], blobs(10)[1].astype(str)),
            "some sets are text and those of others numbers",
        ),
        ((blobs(10)[0], np.ones(10)), (blobs(10)[0], np.ones(10)), "all labels are .*1.0"),
        (blobs(10), (blobs(10)[0], blobs(10)[0]), "give one label a sample"),
    ],
)
def test_sets_that_cannot_be_measured(first: Any, second: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        unpoison.compatibility(None, first, second)


def test_numbers_that_are_no_classes() -> None:
    with pytest.raises(ValueError, match="continuous"):
        unpoison.expansion_error(None, (blobs(10)[0], np.linspace(0, 1, 10)))


# --- a source and a file of sets ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 samples, 30 more like them, and 40 with the labels the other way round."""
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    parts = [blobs(30), blobs(30, seed=1), blobs(40, seed=2, flipped=True)]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    rows = [f"s{i},{'yes' if y[i] else 'no'},{','.join(f'{v:.4f}' for v in X[i])}" for i in range(100)]
    path.write_text("key,answer,a,b,c,d\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


LOAD = LoadOptions(label="answer", id_column="key")
OPTIONS = MeasureOptions(how=Measuring(repeats=8), learner=LearnerChoice("logistic"), load=LOAD)


def sets_file(folder: Path, text: str, name: str = "sets.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lines(*names: str) -> str:
    """The samples of the source, 30, 30 and 40 of them in the sets named; empty names leave them out."""
    groups = [name for name, count in zip(names, (30, 30, 40), strict=True) for _ in range(count)]
    return "id,set\n" + "".join(f"s{i},{group}\n" for i, group in enumerate(groups) if group)


def test_a_record_of_everything(source: Path, tmp_path: Path) -> None:
    events: list[Progress] = []
    record = measure(
        str(source), sets_file(tmp_path, lines("left", "right", "flipped")),
        options=OPTIONS, listener=events.append, command="as typed",
    )  # fmt: skip
    assert record["data"]["n"] == 100
    assert {name: found["n"] for name, found in record["sets"].items()} == {
        "left": 30,
        "right": 30,
        "flipped": 40,
    }
    assert [(pair["of"], pair["given"]) for pair in record["pairs"]] == [
        ("left", "right"), ("left", "flipped"), ("right", "left"),
        ("right", "flipped"), ("flipped", "left"), ("flipped", "right"),
    ]  # fmt: skip
    for pair in record["pairs"]:
        alone = record["sets"][pair["of"]]["error"]["mean"]
        assert pair["change"]["mean"] == pytest.approx(pair["error"]["mean"] - alone)
        low, high = pair["change"]["interval"]
        assert low <= pair["change"]["mean"] <= high
        with_flipped = "flipped" in (pair["of"], pair["given"])
        assert (pair["decision"] == "incompatible") == with_flipped
    assert record["cost"]["models"] == 8 * 6 == events[-1].total == events[-1].done
    assert record["cost"]["trained"] == 8 * (16 + 16 + 20 + 30 + 36 + 36), "per class, rounded up"
    assert record["cost"]["scored"] == 8 * (30 + 30 + 40 + 60 + 70 + 70)
    assert (record["learner"], record["seed"], record["command"]) == ("logistic", 0, "as typed")
    assert record["settings"]["alpha"] == 0.5
    assert record["notes"] == []


def test_sets_need_not_cover_the_source(source: Path, tmp_path: Path) -> None:
    record = measure(str(source), sets_file(tmp_path, lines("a", "", "b")), options=OPTIONS)
    assert list(record["sets"]) == ["a", "b"]


def test_other_columns_and_forms(source: Path, tmp_path: Path) -> None:
    dataset = load(source, options=LOAD)
    tabs = "more\tset\tid\n" + "".join(f"x\t{'ab'[i % 2]}\ts{i}\n" for i in range(10))
    semicolons = "\ufeffset;id\r\n" + "".join(f"{'ab'[i % 2]};s{i}\r\n" for i in range(10))
    for name, text in (("sets.tsv", tabs), ("sets.csv", semicolons)):
        found = read_sets(sets_file(tmp_path, text, name), dataset, max_bytes=10**6)
        assert {group: places.tolist() for group, places in found.items()} == {
            "a": [0, 2, 4, 6, 8], "b": [1, 3, 5, 7, 9],
        }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,set\ns1,a\ns2,b\nnobody,a\n", r"sets.csv:4: rows.csv has no sample .*'nobody'; .* 's0'"),
        ("id,set\ns1,a\ns2,b\ns1,b\n", r"sets.csv:4: the sample 's1' is in a set already \(line 2\)"),
        ("id,set\ns1,a\ns2,b\ns2,b\n", r"sets.csv:4: the sample 's2' is in a set already \(line 3\)"),
        ("id,set\ns1,a\ns2, \n", r"sets.csv:3: the set of 's2' is empty"),
        ("id,set\ns1,a\ns2,a\n", r"sets.csv: names 1 sets \('a'\); 2 to 20"),
        ("id,set\n", r"sets.csv: names 0 sets; 2 to 20"),
        ("", r"sets.csv:1: the file is empty"),
        ("id,group\ns1,a\n", r"sets.csv:1: there is no column 'set', only 'id', 'group'"),
        ("sample,set\ns1,a\n", r"sets.csv:1: there is no column 'id', only 'sample', 'set'"),
        ("id,set\ns1\n", r"sets.csv:2: 1 fields where the header has 2"),
        ("id,set\n" + "".join(f"s{i},{i}\n" for i in range(30)), r"names 30 sets \('0', '1', '2', ...\)"),
    ],
)  # fmt: skip
def test_bad_files_of_sets(text: str, message: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        measure(str(source), sets_file(tmp_path, text), options=OPTIONS)


def test_a_file_that_is_not_there(source: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(InputError, match="is no file; give a CSV file with the columns 'id'"):
            measure(str(source), path, options=OPTIONS)


def test_a_set_of_one_class_is_told(source: Path, tmp_path: Path) -> None:
    text = "id,set\n" + "".join(f"s{i},{'ones' if i % 2 else 'both'}\n" for i in range(30) if i % 4 != 1)
    text += "".join(f"s{i},both\n" for i in range(30, 60))
    record = measure(str(source), sets_file(tmp_path, text), options=OPTIONS)
    assert record["sets"]["ones"]["classes"] == 1
    assert record["sets"]["ones"]["error"]["mean"] == 0
    (note,) = record["notes"]
    assert note.startswith("All samples of 'ones' have the same label.")


def test_a_learner_that_explains_little_is_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{i},{'ab'[i % 2]},{rng.normal():.3f},{rng.normal():.3f}" for i in range(60)]
    source = sets_file(tmp_path, "key,label,u,v\n" + "\n".join(rows) + "\n", "noise.csv")
    halves = sets_file(tmp_path, "id,set\n" + "".join(f"{i},{i // 30}\n" for i in range(60)))
    options = MeasureOptions(how=Measuring(repeats=4), load=LoadOptions(label="label", id_column="key"))
    notes = measure(str(source), halves, options=options)["notes"]
    assert [note[:38] for note in notes] == [
        f"The learner explains little of '{half}': alone"[:38] for half in "01"
    ]
