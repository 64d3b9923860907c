from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from unpoison.core.result import Group
from unpoison.outputs import record as records
from unpoison.outputs.summary import MAX_ROWS, build, code
from unpoison.report.shared import Shared
from unpoison.report.text import printable
from unpoison.report.traits import Trait

from .builders import NASTY, RUN, make_dataset, make_result

OUT = Path("results")
OUR_TAGS = {
    "h2",
    "h3",
    "p",
    "code",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "li",
    "strong",
    "blockquote",
}


def summary(dataset: Any = None, **changes: Any) -> str:
    dataset = dataset or make_dataset()
    record = records.build(dataset, make_result(dataset, **changes), run=RUN)
    return build(record, out=OUT)


class Page(HTMLParser):
    """What a page consists of: its tags, their attributes, and the text in code spans and cells."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        renderer = pytest.importorskip("cmarkgfm", reason="cmarkgfm, GitHub's own renderer, is not installed")
        from cmarkgfm.cmark import Options

        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.codes: list[str] = []
        self.cells: list[str] = []
        self._open: list[str] = []
        # raw HTML is shown as it would be by the most careless of hosts
        self.feed(renderer.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._open.append(tag)
        if tag == "code":
            self.codes.append("")
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "code" in self._open:
            self.codes[-1] += data
        if "td" in self._open:
            self.cells[-1] += data


def test_what_was_found() -> None:
    text = summary()
    assert text.startswith("## unpoison: 3 of 40 samples (7.5%) look planted\n")
    assert "`pets`, 3 classes, judged by `logistic regression` with the method `self-paced`, seed 7." in text
    assert "| `cat` | 14 | 3 | 21.4% | `dog` (3) |" in text
    assert "| `bird` |" not in text
    assert "| `cat` | `dog` | 3 | agreement 0.40 |" in text
    assert "`results/report.html`" in text
    assert "`results/manifest.csv`" in text
    assert "`unpoison apply results --overrides overrides.json`" in text
    assert text.endswith("\n")


def test_what_the_removed_share_is_said() -> None:
    dataset = make_dataset()
    result = make_result(dataset, removed=[0, 3, 6, 1, 4], called=2)

    def said(**shared: Any) -> str:
        record = records.build(dataset, result, run=RUN, shared={0: Shared(**shared)})
        return build(record, out=OUT)

    text = said(pattern="in the upper left corner")
    assert "\n- 3 labelled `cat` share a pattern in the upper left corner\n" in text
    assert "\n- 2 labelled `dog` share no mark that was found: look there first\n" in text
    assert "How sure: mixed. The votes are clear\\: models" in text
    assert "labelled `cat` share the word `cf`\n" in said(traits=(Trait(None, "cf", 1.0, 0.0),))
    traits = (Trait("x", "9", 1.0, 0.0), Trait("y", "396 to 412", 1.0, 0.0, is_range=True))
    assert "labelled `cat` share `x` = `9` and `y` `396 to 412`\n" in said(traits=traits)


@pytest.mark.parametrize("name", [*NASTY, "`code`", "@admin #1", "a@e.example"], ids=lambda name: name[:9])
def test_what_is_shared_does_nothing(name: str) -> None:
    dataset = make_dataset(names=(name or "(none)", "dog", "bird"))
    for traits in ((Trait(None, name, 1.0, 0.0),), (Trait(name, name, 1.0, 0.0),)):
        record = records.build(dataset, make_result(dataset), run=RUN, shared={0: Shared(traits=traits)})
        page = Page(build(record, out=OUT))
        assert page.tags <= OUR_TAGS
        assert page.attributes == set()


def test_many_labels_are_cut() -> None:
    dataset = make_dataset(n=600, names=[f"class {i:03d}" for i in range(60)])
    text = summary(dataset, removed=range(120))
    assert text.count("share no mark that was found") == MAX_ROWS
    assert "\n- and those of 40 more labels\n" in text


def test_one_sample_and_none() -> None:
    assert summary(removed=[3]).startswith("## unpoison: 1 of 40 samples (2.5%) looks planted\n")
    text = summary(removed=[])
    assert text.startswith("## unpoison: nothing in 40 samples looks planted\n")
    assert "###" in text
    assert "By class" not in text
    assert "Groups" not in text
    assert "`results/report.html`" in text


def test_a_caution_is_told() -> None:
    dataset = make_dataset()
    record = records.build(dataset, make_result(dataset), run=RUN)
    record["result"]["caution"] = "Only 12.5% of *it* <b>is</b> explained; see https://x.example."
    text = build(record, out=OUT)
    assert r"> **Caution:** Only 12.5% of \*it\* \<b\>is\<\/b\> explained; see https\:\/\/x.example." in text
    page = Page(text)
    assert page.tags <= OUR_TAGS
    assert page.attributes == set()


def test_a_review_is_told() -> None:
    dataset = make_dataset()
    record = records.build(dataset, make_result(dataset), run=RUN)
    record["review"] = {"summary": "People decided about 2 of the samples."}
    text = build(record, out=OUT)
    assert text.startswith("## unpoison: 3 of 40 samples (7.5%) removed after a review\n")
    assert "\nPeople decided about 2 of the samples.\n" in text


MORE_NASTY = (
    "`code`", "``two``", "a|b", "\\", "x\\|y", "@admin #1 GH-2", "![i](http://e.example/i.png)",
    "[click](javascript:alert(1))", "<https://e.example>", "www.e.example", "a@e.example",
    "**bold** _it_ ~no~",
    "| --- |", "# head", "- [ ] task", "&lt;b&gt; &#64;", ":smile:", " ", "    indented", "\u200b",
)  # fmt: skip


@pytest.mark.parametrize("name", [*NASTY, *MORE_NASTY], ids=lambda name: repr(name[:20]))
def test_names_are_shown_and_do_nothing(name: str) -> None:
    dataset = make_dataset(names=(name or "(none)", "dog", "bird"), name=name)
    text = summary(dataset)
    page = Page(text)
    assert page.tags <= OUR_TAGS
    assert page.attributes == set()
    assert all(character.isprintable() or character == "\n" for character in text)
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("| `")] == [
        6,
        5,
    ]
    written_out = printable(name or "(none)").replace("`", r"\x60").replace("|", r"\x7c")
    shown = [found for found in page.codes if found.strip() == written_out.strip()]
    assert len(shown) >= 2, "in the table of classes and in that of groups"
    assert len(text) < 3000


def test_code_spans() -> None:
    assert code("cat") == "`cat`"
    assert code("") == "` `"
    assert code("x" * 500) == f"`{printable('x' * 500)}`"


def test_long_tables_are_cut_and_say_so() -> None:
    names = [f"class {i:03d}" for i in range(60)]
    dataset = make_dataset(n=600, names=names)
    text = summary(dataset, removed=range(60))
    assert len(re.findall(r"^\| `class", text, re.MULTILINE)) == MAX_ROWS + 1
    assert "\nand 40 more\n" in text
    assert Page(text).cells[0] == "class 000"


def test_classes_with_most_removed_come_first() -> None:
    text = summary(removed=[0, 1, 4, 7])
    assert text.index("| `dog` |") < text.index("| `cat` |")


def test_groups_say_their_reason_instead_of_numbers() -> None:
    dataset = make_dataset()
    result = make_result(dataset)
    numbers = {"met": 13.0, "unmet": 0.9}
    groups = (
        Group(0, 3, True, 1, numbers, reason="Planted (a mark): it is | `so` <b>and</b> <so>, 1.5 of it."),
        Group(0, 2, True, 1, numbers),
        Group(1, 9, False, 1, numbers, undecided=True, reason="Undecided: near."),
    )
    text = build(records.build(dataset, dataclasses.replace(result, groups=groups), run=RUN), out=OUT)
    assert "| labelled | called | samples | why |" in text
    assert "| `cat` | `dog` | 2 | met 13.00, unmet 0.90 |" in text
    page = Page(text)
    assert "Planted (a mark): it is | `so` <b>and</b> <so>, 1.5 of it." in page.cells
    assert page.tags <= OUR_TAGS
    assert "| labelled | called | samples | evidence |" in summary()


def test_what_was_found_of_our_own_says_how_sure() -> None:
    dataset = make_dataset()
    canaries = [{"label": 1, "size": 150, "found": 150}, {"label": 2, "size": 15, "found": 0}]
    result = dataclasses.replace(make_result(dataset), notes={"canaries": canaries})
    text = build(records.build(dataset, result, run=RUN), out=OUT)
    assert "\nHow sure: mixed. Of our own 150 and 15 planted samples, 150 and 0 were found.\n" in text
    assert "votes" not in text
    assert "**Caution:** Groups of about 15 samples" in text
