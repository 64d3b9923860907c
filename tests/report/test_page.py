from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from unpoison.core.result import Group, Sanitization
from unpoison.data.container import Dataset, Preview
from unpoison.report import page as page_module
from unpoison.report import render
from unpoison.report.embed import script
from unpoison.report.review import Review

from .builders import NASTY, judged, make, page
from .test_canaries import with_canaries

VOID = {"meta", "img", "br", "line", "input"}
TAGS = (
    "html head meta title style body header main footer section article h1 h2 h3 p dl dt dd div ol ul li a "
    "code strong em bdi span i table caption thead tbody tr th td figure figcaption img blockquote details "
    "summary svg text line rect polygon circle script button select option label input kbd"
)
ATTRIBUTES = (
    "lang charset http-equiv content name class id aria-labelledby aria-label aria-hidden aria-pressed role "
    "tabindex title scope colspan style src alt href viewbox x y x1 x2 y1 y2 width height text-anchor type "
    "points cx cy r for value autocomplete min accept hidden disabled data-label data-called data-all"
)


class Checker(HTMLParser):
    """Refuses what the page must never hold, and collects what it shows."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []
        self.headings: list[int] = []
        self.images: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.labelled: set[str] = set()
        self.controls: set[str] = set()
        self.scripts: list[tuple[dict[str, str | None], str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS.split(), tag
        found = dict(attrs)
        assert set(found) <= set(ATTRIBUTES.split()), found
        assert len(found) == len(attrs)
        assert re.fullmatch(r"(width|--share):\d+\.\d%", found.get("style") or "width:0.0%")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "img":
            self.images.append(found)
        if tag == "label":
            self.labelled.add(found["for"] or "")
        if tag in {"select", "input"}:
            self.controls.add(found["id"] or "")
        if tag == "script":
            self.scripts.append((found, ""))
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found["href"] or ""] if "href" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag
            self.text.append(" " if tag in {"td", "th", "dt", "p", "li"} else "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        assert tag in {"line", "polygon"}
        if tag not in VOID:
            self.open.pop()

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            attributes, so_far = self.scripts[-1]
            self.scripts[-1] = (attributes, so_far + data)
        elif self.open[-1:] != ["style"]:
            self.text.append(data)


def check(html: str) -> Checker:
    assert html.startswith("<!DOCTYPE html>\n<html lang=")
    assert len(html.encode("utf-8")) < 30_000_000
    assert not [c for c in set(html) if not c.isprintable() and c not in "\n\u3000"]
    assert not re.search(r"<[^>]*\son\w+\s*=", re.sub(r'"[^"]*"', '""', html.replace(script(), "")))
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert checker.headings[0] == 1
    assert checker.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(checker.headings, checker.headings[1:], strict=False))
    assert all(image["alt"] and image["src"].startswith("data:image/") for image in checker.images)
    assert len(set(checker.ids)) == len(checker.ids)
    assert all(link[0] == "#" and link[1:] in checker.ids for link in checker.links)
    assert checker.controls <= checker.labelled
    *blocks, (attributes, source) = checker.scripts
    assert (attributes, source) == ({}, script())
    assert all(found["type"] == "application/json" and "<" not in text for found, text in blocks)
    return checker


def shown(html: str) -> str:
    """What a reader without JavaScript sees."""
    return " ".join("".join(check(html).text).split())


def data(html: str) -> dict[str, Any]:
    """What the script reads."""
    (found,) = (json.loads(text) for about, text in check(html).scripts if about.get("id") == "page-data")
    return dict(found)


def texts(n: int = 120, **options: Any) -> Dataset:
    return make("text", lambda i: Preview(text=f"text number {i}"), n=n, **options)


def test_says_what_was_found() -> None:
    dataset = texts()
    result = judged(dataset, range(0, 30, 3), agreement=0.02, elsewhere=0.95, other_thing=7.5)
    html = page(dataset, result)
    text = shown(html)
    for part in (
        "10 of 120 samples (8.3%) look planted: all are labelled 'cat' and called 'dog'",
        "Mixed evidence The votes are clear: models give the removed samples their own label in 0% of",
        "It holds the 110 kept samples as one CSV file",
        "cat 40 10 25.0% 10",
        "2 classes lose nothing",
        "removed 10 samples labelled “cat”, called “dog”",
        "elsewhere 95.0% How often they give another, as surely as",
        "other thing 7.5",
        "text number 27 cat → dog sample 27 suspicion 0.9",
        "left over 3 labels 120 10",
        "setting: alpha 0.1",
        "unpoison clean x",
        dataset.fingerprint,
        "Trained 1,000 passes, each of one sample through one model",
        "Scored 20 passes, each of one sample through one model",
    ):
        assert part in text, part
    assert "http" not in re.sub(r"http-equiv", "", html)


def test_nothing_removed() -> None:
    dataset = texts()
    text = shown(page(dataset, judged(dataset, [])))
    assert "Nothing in 120 samples looks planted." in text
    assert "Finding nothing is not a proof" in text
    assert "most suspicious first Kept" not in text


def test_everything_removed() -> None:
    dataset = texts()
    html = page(dataset, judged(dataset, range(120)))
    assert "worth a look" not in shown(html)
    assert len(data(html)["samples"]) == 120


def test_most_suspicious_first_and_no_more_than_promised() -> None:
    dataset = texts(n=600)
    html = page(dataset, judged(dataset, range(0, 300, 3)))
    still = [int(number) for number in re.findall(r"text number (\d+)", shown(html))]
    assert still[:24] == list(range(297, 225, -3))
    assert still[24:] == list(range(599, 587, -1))
    rows = data(html)["samples"]
    assert [row[0] for row in rows[:100]] == [f"sample {i}" for i in range(297, -1, -3)]
    assert [row[0] for row in rows[100:]] == [f"sample {i}" for i in range(599, 399, -1)]


def test_policy_allows_one_script_by_its_hash_and_no_network() -> None:
    html = page(dataset := texts(), judged(dataset, [0]))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(check(html).scripts[-1][1].encode()).digest()).decode()
    allowed = dict(part.split(" ", 1) for part in policy[1].replace("&#39;", "'").split("; "))
    assert allowed == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": "'unsafe-inline'",
        "script-src": f"'sha256-{digest}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert html.index("Content-Security-Policy") < html.index("<style>")


def test_same_input_same_page() -> None:
    dataset = texts()
    assert page(dataset, judged(dataset, [0, 3])) == page(dataset, judged(dataset, [0, 3]))


def nasty_ids(n: int) -> list[str]:
    return [f"{NASTY[i % len(NASTY)]}{i}" for i in range(n)]


def without_surrogates(values: tuple[str, ...]) -> tuple[str, ...]:
    """A record has a fingerprint, and that needs Unicode."""
    return tuple(value.replace("\udcff", "") for value in values)


@pytest.mark.parametrize("kind", ["text", "rows", "image"])
def test_nasty_names_and_contents_stay_harmless(kind: str) -> None:
    names = without_surrogates(NASTY)
    columns = tuple(zip(NASTY, reversed(NASTY), strict=True))
    pixels = np.zeros((220, 4, 4, 3), dtype=np.uint8)

    def show(index: int) -> Preview:
        if kind == "text":
            return Preview(text="\n".join(NASTY[index % 9 :]))
        return Preview(columns=columns) if kind == "rows" else Preview(image=pixels[index])

    ids = [i.replace("\udcff", "") for i in nasty_ids(220)]
    features = pixels if kind == "image" else None
    dataset = make(kind, show, n=220, names=names, ids=ids, features=features)  # type: ignore[arg-type]
    dataset = dataclasses.replace(dataset, name=NASTY[0] + NASTY[5] + NASTY[-1])
    result = judged(dataset, range(0, 220, 2), **dict.fromkeys(NASTY[:10], 0.5))
    result = dataclasses.replace(result, notes=dict(zip(NASTY, NASTY, strict=True)))
    nasty = {"settings": dict(zip(NASTY, NASTY, strict=True)), "command": NASTY[-1] + NASTY[8]}
    html = page(dataset, result, method=NASTY[0], learner=NASTY[1], **nasty)
    text = shown(html)
    assert "<script>alert(1)</script>" in text
    assert "{{7*7}}" in text
    assert "null\\x00byte" in text
    assert "bidi\\u202egnp.exe\\u2066" in text
    assert {row[0] for row in data(html)["samples"]} <= set(ids), "overrides need ids as they are"


def test_surrogates_do_not_break_the_page() -> None:
    dataset = make("text", lambda _: Preview(text="x\udcff"), ids=[f"{i}\udcff" for i in range(120)])
    plain_dataset = texts()
    result = judged(dataset, [0])
    html = _render_with(dataset, result, plain_dataset)
    assert "0\\udcff" in shown(html)


def _render_with(dataset: Dataset, result: Any, recorded: Dataset) -> str:
    from unpoison.outputs import record
    from unpoison.outputs.record import RunFacts

    run = RunFacts(settings={}, method="m", learner="l", seed=0, seconds=0.0)
    return render(dataset, result, record=record.build(recorded, result, run=run))


def test_long_names_are_cut_with_more_in_the_title() -> None:
    name = "start" + "x" * 100 + "end"
    dataset = texts(names=(name, "b", "c"))
    html = page(dataset, judged(dataset, [0]))
    assert f'<bdi title="{name}">start' in html
    assert re.search(r">startx+…x+end</bdi>", html)


@pytest.mark.parametrize("n_classes", [2, 1000])
def test_stays_bounded_at_its_worst(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (2000, 24, 24, 3), dtype=np.uint8)
    large = rng.integers(0, 256, (128, 128, 3), dtype=np.uint8)
    dataset = make(
        "image",
        lambda _: Preview(image=large),
        n=2000,
        names=[f"{i}" + "<&\"'" * 1000 for i in range(n_classes)],
        ids=[f"{i}" + "\0\"'" * 300 for i in range(2000)],
        features=noise,
    )
    result = judged(dataset, range(1500), **{f"{i}" + '"' * 99: 0.1 for i in range(50)})
    groups = tuple(dataclasses.replace(result.groups[0], label=i % n_classes) for i in range(500))
    result = dataclasses.replace(result, groups=groups)
    long = {f"{i}" + '"' * 999: '"' * 9999 for i in range(500)}
    check(page(dataset, result, settings=long, command='"' * 99_999))


def test_pictures_and_what_cannot_be_shown() -> None:
    pixels = np.zeros((120, 8, 8, 1), dtype=np.uint8)

    def show(index: int) -> Preview:
        if index == 3:
            raise OSError("gone")
        return Preview(image=pixels[index, :, :, 0])

    dataset = make("image", show, features=pixels)
    html = page(dataset, judged(dataset, [0, 3, 6]))
    checker = check(html)
    assert len(checker.images) == 6 + 2 + 12
    assert all(image.get("class") == "tiny" for image in checker.images)
    assert "cannot be shown" in html
    assert "What the removed images have in common" in html


def test_rows_show_their_columns() -> None:
    rows = make("rows", lambda i: Preview(columns=tuple((f"column {c}", f"{i}.{c}") for c in range(14))))
    html = page(rows, judged(rows, [0, 3]))
    text = shown(html)
    assert "column 9 3.9" in text
    assert "column 10" not in text
    assert "4 more columns are not shown." in text
    assert data(html)["columns"] == [f"column {c}" for c in range(10)]
    assert data(html)["samples"][0][8] == [f"3.{c}" for c in range(10)]


def test_a_column_that_sets_the_removed_apart_comes_first() -> None:
    removed = range(0, 30, 3)
    rows = make(
        "rows",
        lambda i: Preview(columns=(*((f"c{c}", f"{i}.{c}") for c in range(14)), ("mark", str(i in removed)))),
    )
    html = page(rows, judged(rows, removed))
    assert data(html)["columns"][:2] == ["mark", "c0"]
    assert "mark True 100% 0%" in shown(html)


def test_common_mark_of_texts_is_named() -> None:
    dataset = make("text", lambda i: Preview(text=f"text {i}" + " cf" * (i in range(0, 30, 3))))
    text = shown(page(dataset, judged(dataset, range(0, 30, 3))))
    assert "What the removed samples have in common" in text
    assert "cf 100% 0%" in text


def test_groups_removed_first_then_by_size() -> None:
    dataset = texts()
    result = judged(dataset, [0, 3])
    groups = tuple(
        Group(0, size, removed, 1) for size, removed in ((5, False), (2, True), (9, False), (4, True))
    )
    text = shown(page(dataset, dataclasses.replace(result, groups=groups)))
    assert re.findall(r"(removed|kept) (\d) samples labelled", text) == [
        *(("removed", "4"), ("removed", "2"), ("kept", "9"), ("kept", "5"))
    ]


def test_numbers_of_one_group_explain_each_other() -> None:
    dataset = texts()
    result = judged(dataset, range(0, 30, 3))
    result.predicted[[0, 3]] = 2
    components = np.where(result.keep, 0, 2)[None, :]
    components[0, 0] = 0
    groups = (Group(1, 5, False, 2), Group(0, 9, True, 1))
    result = dataclasses.replace(result, groups=groups, components=components)
    text = shown(page(dataset, result, method="groups"))
    assert "8 of the 10 samples labelled “cat”, those called “dog”" in text
    assert "removed Group 2: 9 samples labelled “cat”, called “dog” 1 more sample with this label was" in text
    assert "kept Group 1: 5 samples labelled “dog”" in text
    assert "group 2 cat 9 9" in text
    assert "the rest 3 labels 111 1" in text


def test_no_vote_is_said() -> None:
    dataset = texts()
    assert "cat → no vote" in shown(page(dataset, judged(dataset, [0], called=-1)))


def test_a_review_is_said_and_its_samples_are_there() -> None:
    from unpoison.outputs import record
    from unpoison.outputs.overrides import Overrides

    from .builders import run_facts

    dataset = texts(n=600)
    result = judged(dataset, [0, 3])
    keep, decided = result.keep.copy(), np.zeros(600, dtype=np.bool_)
    keep[[0, 4]] = True, False
    decided[[0, 4]] = True
    review = Review(keep, decided)
    facts = record.build(dataset, result, run=run_facts())
    overrides = Overrides("", frozenset({"sample 0"}), frozenset({"sample 4"}), "0" * 64)
    facts = record.reviewed(facts, dataset, result, review=review, overrides=overrides)
    html = render(dataset, result, record=facts, review=review)
    assert "1 that the run had removed is kept, 1 that it had kept is removed. Now 2 are removed" in shown(
        html
    )
    rows = {row[0]: row for row in data(html)["samples"]}
    assert rows["sample 0"][5:8] == [0, 1, 1]
    assert rows["sample 3"][5:8] == [0, 0, 0]
    assert rows["sample 4"][5:8] == [1, 0, 1], "too little suspicion to be shown otherwise"


def test_templates_never_switch_escaping_off() -> None:
    assert page_module._template("page.html.j2").environment.autoescape is True
    folder = page_module.embed.resources.files("unpoison.report") / "web"
    sources = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    for name, source in sources.items():
        if name.endswith(".j2"):
            assert not re.search(r"\|\s*safe|autoescape", source.split("#}", 1)[1]), name
    scripts = [source for name, source in sources.items() if name.endswith(".js")]
    assert len(scripts) == len(page_module.embed.SCRIPTS)
    for source in scripts:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|</", source)


MEASURED = {"met_error": 0.5, "unmet_error": 0.2}


def of_groups(dataset: Dataset) -> Sanitization:
    """A planted, an undecided and a natural group, as the method of groups gives them."""
    result = judged(dataset, range(0, 30, 3))
    groups = (
        Group(1, 40, False, 1, {"met": 14.0, "unmet": 13.0, **MEASURED}, reason="Natural: it is <b>so</b>."),
        Group(2, 30, False, 0, {"met": 8.0, "unmet": 2.1, **MEASURED}, True, "Undecided: it is near."),
        Group(0, 10, True, 1, {"met": 13.0, "unmet": 0.9, **MEASURED}, reason="Planted: it dissolves."),
        Group(1, 9, False, 1, {"met": 9.0, "unmet": 9.0, **MEASURED}, True, "Undecided: it is small."),
    )
    return dataclasses.replace(result, groups=groups)


def test_groups_are_drawn_between_the_thresholds_of_the_settings() -> None:
    dataset = texts(names=("ca<t>", "dog", "bird"))
    html = page(dataset, of_groups(dataset), method="groups", settings={"met": 7.0, "kept": 0.25})
    text = shown(html)
    assert "planted, removed (1) undecided, kept (2) natural, kept (1)" in text
    assert "at least 7 to the right, and at most 0.25 of that upwards" in text
    (figure,) = re.findall(r'<svg class="chart scatter".*?</svg>', html, re.DOTALL)
    assert 'role="img" aria-label="Judged groups by how far they stand apart: 1 planted' in figure
    assert [figure.count(f'class="{name}"') for name in ("planted", "undecided", "natural")] == [1, 2, 1]
    assert "Group 3, planted: 10 samples labelled &#39;ca&lt;t&gt;&#39;, 13.0 where met, 0.9" in figure


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_a_state_that_no_group_has_is_not_in_the_legend(left_out: int) -> None:
    dataset = texts()
    result = of_groups(dataset)
    of_state = [result.groups[2:3], (result.groups[1], result.groups[3]), result.groups[:1]]
    groups = tuple(group for place, some in enumerate(of_state) if place != left_out for group in some)
    some = dataclasses.replace(result, groups=groups)
    legend = ["planted, removed (1)", "undecided, kept (2)", "natural, kept (1)"]
    del legend[left_out]
    assert " ".join(legend) in shown(page(dataset, some, settings={"met": 7.0, "kept": 0.25}))


def test_no_figure_where_groups_were_not_measured_so() -> None:
    dataset = texts()
    for result, settings in ((of_groups(dataset), {}), (judged(dataset, [0]), {"met": 7.0, "kept": 0.25})):
        assert "chart scatter" not in page(dataset, result, settings=settings)


def test_cards_say_the_reason_first_and_undecided_ones_come_second() -> None:
    dataset = texts()
    html = page(dataset, of_groups(dataset), method="groups", settings={})
    assert re.findall(r"(removed|undecided|kept) Group (\d): (\d+) samples", shown(html)) == [
        *(("removed", "3", "10"), ("undecided", "2", "30"), ("undecided", "4", "9"), ("kept", "1", "40"))
    ]
    assert re.findall(r"</h3>\s*<p>([^<]*)</p>", html) == [
        *("Planted: it dissolves.", "Undecided: it is near.", "Undecided: it is small."),
        "Natural: it is &lt;b&gt;so&lt;/b&gt;.",
    ]


def test_our_own_samples_are_told_of_and_shown_nowhere() -> None:
    dataset = texts()
    plain_result = of_groups(dataset)
    result = with_canaries(plain_result, (15, 15), (12, 0))
    html, before = (page(dataset, each, method="groups") for each in (result, plain_result))
    text = shown(html)
    assert "Mixed evidence Of our own 15 and 12 planted samples, 15 and 0 were found." in text
    assert "Caution. Groups of about 12 samples, 30% of their class, would have been missed." in text
    assert "Of our own" not in shown(before)
    assert "canaries" not in text
    assert data(html) == data(before)


def test_measured_evidence_also_where_nothing_is_removed() -> None:
    dataset = texts()
    assert "Clear evidence Of our own 15" in shown(
        page(dataset, with_canaries(judged(dataset, []), (15, 15)))
    )
    assert "Clear votes The votes" in shown(page(dataset, judged(dataset, [])))


def test_a_record_of_before_reasons_is_still_shown() -> None:
    """``unpoison apply`` writes the report of an older run anew."""
    from unpoison.outputs import record

    from .builders import run_facts

    dataset = texts()
    result = judged(dataset, [0, 3], agreement=0.4)
    facts = record.build(dataset, result, run=run_facts())
    del facts["result"]["canaries"], facts["result"]["certainty"]["measured"]
    for group in facts["result"]["groups"]:
        del group["undecided"], group["reason"]
    assert "removed 2 samples labelled" in shown(render(dataset, result, record=facts))
