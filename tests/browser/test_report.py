"""The report as a person uses it: opened from disk in a real browser."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.builders import call, manifest_rows
from finished import finish, save_overrides
from report.builders import NASTY, judged, make, page
from report.test_style import contrast
from unpoison.data.container import Preview
from unpoison.data.load import load
from unpoison.outputs import verify

from .conftest import Opener

N_SEVENS, N_THREES = 50, 10


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the digits that removed fifty sevens and ten threes, all called one."""
    dataset = load("digits")
    removed = [
        *np.flatnonzero(dataset.labels == 7)[:N_SEVENS].tolist(),
        *np.flatnonzero(dataset.labels == 3)[:N_THREES].tolist(),
    ]
    place = tmp_path_factory.mktemp("browser") / "out"
    return finish(dataset, place, source="digits", removed=removed, called="1")


@pytest.fixture
def shown(out: Path, opener: Opener) -> Any:
    return opener.open(out / "report.html")


def ids(page: Any) -> list[str]:
    found: list[str] = page.locator("#cards .id").all_inner_texts()
    return found


def changes(page: Any) -> list[str]:
    return sorted(set(page.locator("#cards .what").all_inner_texts()))


def removed_rows(out: Path) -> list[dict[str, str]]:
    return [row for row in manifest_rows(out) if row["keep"] == "false"]


def focused(page: Any) -> str:
    found: str = page.evaluate("document.activeElement.querySelector('.id').textContent")
    return found


def test_opens_from_disk_and_says_what_was_found(shown: Any) -> None:
    assert shown.title() == "unpoison: digits"
    assert shown.locator("h1").inner_text().startswith("60 of 1,797 samples (3.3%) look planted")
    assert shown.locator(".without-script").is_hidden()
    assert shown.locator("#cards .card").count() == 24
    assert shown.locator("#page-of").inner_text() == "of 3"
    widths = shown.evaluate("[...document.images].filter(i => i.offsetParent).map(i => i.naturalWidth)")
    assert len(widths) > 24
    assert all(width == 8 for width in widths)


def test_cards_stand_beside_their_nearest_neighbours(shown: Any) -> None:
    card = shown.locator("#cards .card").first
    assert card.locator(".near img").count() == 2
    captions = card.locator(".near figcaption").all_text_contents()
    assert captions == ["nearest kept 7", "nearest kept 1"]
    for caption, says in zip(card.locator(".near figcaption").all(), ("kept 7", "kept 1"), strict=True):
        assert says in caption.inner_text()
        box = caption.bounding_box()
        assert min(box["width"], box["height"]) > 10, "it can be read"


def test_most_suspicious_first_and_the_other_orders(shown: Any, out: Path) -> None:
    expected = sorted(removed_rows(out), key=lambda row: -float(row["suspicion"]))
    assert ids(shown) == [row["id"] for row in expected[:24]]
    shown.select_option("#choose-order", "least")
    assert ids(shown) == [row["id"] for row in expected[::-1][:24]]
    shown.select_option("#choose-order", "id")
    assert ids(shown) == sorted(row["id"] for row in expected)[:24]


def test_a_number_of_the_matrix_chooses_its_samples(shown: Any, out: Path) -> None:
    shown.locator("a[data-label='3'][data-called='1']").click()
    assert changes(shown) == ["3 → 1"]
    assert len(ids(shown)) == N_THREES
    assert shown.locator("#choose-label").input_value() == "3"
    shown.locator("a[data-label='7']:not([data-called])").click()
    assert changes(shown) == ["7 → 1"]
    assert shown.locator("#choose-called").input_value() == ""
    assert shown.locator("[data-all=keep]").inner_text() == f"Keep all {N_SEVENS}"


def test_filters_by_kind_label_and_vote(shown: Any) -> None:
    labels = shown.locator("#choose-label option").all_inner_texts()
    assert labels == ["any label", f"3 ({N_THREES})", f"7 ({N_SEVENS})"]
    assert shown.locator("#choose-called option").all_inner_texts() == ["anything", "1 (60)"]
    shown.select_option("#choose-label", "3")
    assert changes(shown) == ["3 → 1"]
    called = shown.locator("#choose-called option").all_inner_texts()
    assert called == ["anything", f"1 ({N_THREES})"], "of the chosen label"
    shown.select_option("#choose-set", "kept")
    assert shown.locator("#choose-label").input_value() == "", "another set is looked at whole"
    assert set(shown.locator("#cards .state").all_inner_texts()) == {
        text for text in shown.locator("#cards .state").all_inner_texts() if "kept by the run" in text
    }
    shown.select_option("#choose-set", "marked")
    assert ids(shown) == []
    assert shown.locator("#none-chosen").is_visible()
    assert shown.locator("[data-all=keep]").is_disabled()


def test_pages(shown: Any) -> None:
    first = ids(shown)
    assert shown.locator("#previous").is_disabled()
    shown.click("#next")
    assert not set(ids(shown)) & set(first)
    shown.fill("#page-number", "3")
    shown.press("#page-number", "Enter")
    assert len(ids(shown)) == 60 - 48
    assert shown.locator("#next").is_disabled()
    shown.fill("#page-number", "99")
    shown.press("#page-number", "Enter")
    assert shown.locator("#page-number").input_value() == "3"
    shown.fill("#page-number", "1")
    shown.press("#page-number", "Enter")
    assert ids(shown) == first


def test_review_with_the_keyboard_alone(shown: Any) -> None:
    first = ids(shown)
    shown.locator("#undo").focus()
    shown.locator("#cards .card").first.focus()
    shown.keyboard.press("k")
    assert focused(shown) == first[1]
    shown.keyboard.press("r")
    assert shown.locator("#marked-count").inner_text() == "1 to keep, 1 to remove"
    shown.keyboard.press("ArrowLeft")
    assert focused(shown) == first[1]
    shown.keyboard.press("r")
    assert shown.locator("#marked-count").inner_text() == "1 to keep, 0 to remove", "the same again unmarks"
    shown.keyboard.press("u")
    assert shown.locator("#marked-count").inner_text() == "1 to keep, 1 to remove"
    shown.keyboard.press("End")
    assert focused(shown) == first[-1]
    shown.keyboard.press("ArrowRight")
    assert focused(shown) == ids(shown)[0] != first[0], "over the end of the page"
    shown.keyboard.press("p")
    assert focused(shown) == first[0]
    shown.keyboard.press("n")
    assert shown.locator("#page-number").input_value() == "2"
    outline = shown.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px", "one sees where one is"


def test_keys_with_caps_lock_and_by_rows(shown: Any) -> None:
    first = ids(shown)
    shown.locator("#cards .card").first.focus()
    shown.keyboard.press("K")
    shown.keyboard.press("R")
    assert shown.locator("#marked-count").inner_text() == "1 to keep, 1 to remove"
    shown.keyboard.press("U")
    assert shown.locator("#marked-count").inner_text() == "1 to keep, 0 to remove"
    tops = [card.bounding_box()["y"] for card in shown.locator("#cards .card").all()]
    columns = tops.count(tops[0])
    assert columns > 1
    assert focused(shown) == first[2]
    shown.keyboard.press("ArrowDown")
    assert focused(shown) == first[2 + columns]
    shown.keyboard.press("ArrowUp")
    shown.keyboard.press("ArrowUp")
    assert focused(shown) == first[2], "there is nothing above"
    shown.keyboard.press("End")
    shown.keyboard.press("ArrowDown")
    assert shown.locator("#page-number").input_value() == "2"


def test_down_into_a_row_that_is_not_full(shown: Any) -> None:
    shown.locator("a[data-label='3'][data-called='1']").click()
    cards = shown.locator("#cards .card")
    tops = [card.bounding_box()["y"] for card in cards.all()]
    columns = tops.count(tops[0])
    assert N_THREES % columns, "the last row is not full"
    before = N_THREES - N_THREES % columns - 1
    cards.nth(before).focus()
    shown.keyboard.press("ArrowDown")
    assert focused(shown) == ids(shown)[-1]


def test_letters_mean_nothing_outside_the_samples(shown: Any) -> None:
    shown.locator("#choose-order").focus()
    shown.keyboard.press("k")
    assert shown.locator("#marked-count").inner_text() == "0 to keep, 0 to remove"


def test_review_with_the_mouse_saved_and_applied(out: Path, opener: Opener, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(out, tmp_path / "out"))
    shown = opener.open(copy / "report.html")
    shown.locator("a[data-label='3'][data-called='1']").click()
    shown.click("[data-all=keep]")
    keep = sorted(ids(shown))
    shown.select_option("#choose-set", "kept")
    shown.locator("#cards [data-keep=false]").nth(4).click()
    remove = [ids(shown)[4]]
    assert shown.locator("#cards .card").nth(4).evaluate("card => card.classList.contains('marked')")
    with shown.expect_download() as saving:
        shown.click("#save")
    assert saving.value.suggested_filename == "overrides.json"
    saved = tmp_path / "overrides.json"
    saving.value.save_as(saved)
    assert json.loads(saved.read_text()) == {
        "unpoison_overrides": 1,
        "fingerprint": json.loads((copy / "run.json").read_text())["data"]["fingerprint"],
        "keep": keep,
        "remove": remove,
    }
    done = call("apply", copy, "--overrides", saved, "-q")
    assert (done.code, done.err) == (0, "")
    assert verify(copy) == []
    rows = {row["id"]: row for row in manifest_rows(copy)}
    assert {rows[i]["keep"] for i in keep} == {"true"}
    assert rows[remove[0]]["keep"] == "false"
    again = opener.open(copy / "report.html")
    assert "10 that the run had removed are kept, 1 that it had kept" in again.locator(".note").inner_text()
    again.select_option("#choose-set", "reviewed")
    assert sorted(ids(again)) == sorted([*keep, *remove])


def test_marks_are_remembered_and_undone(out: Path, opener: Opener) -> None:
    context = opener.context()
    shown = opener.open(out / "report.html", context=context)
    shown.click("[data-all=keep]")
    shown.reload()
    assert shown.locator("#marked-count").inner_text() == "60 to keep, 0 to remove"
    other = opener.open(out / "report.html", context=context)
    assert other.locator("#marked-count").inner_text() == "60 to keep, 0 to remove"
    shown.click("[data-all=unmark]")
    shown.click("#undo")
    assert shown.locator("#marked-count").inner_text() == "60 to keep, 0 to remove"
    assert shown.locator("#undo").is_disabled()


def test_overrides_are_loaded_or_refused(out: Path, shown: Any, tmp_path: Path) -> None:
    known = removed_rows(out)[0]["id"]
    good = save_overrides(tmp_path / "good.json", out, keep=[known], remove=["not on this page"])
    shown.set_input_files("#load", good)
    shown.get_by_text("2 decisions loaded").wait_for()
    assert shown.locator("#marked-count").inner_text() == "1 to keep, 1 to remove"
    for content, says in (
        ({"unpoison_overrides": 1, "fingerprint": "x", "keep": [], "remove": []}, "for other data"),
        ({"unpoison_overrides": 9}, "does not hold overrides"),
        ([1], "does not hold overrides"),
        ({**json.loads(good.read_text()), "keep": [3]}, "must be lists of ids"),
    ):
        (tmp_path / "bad.json").write_text(json.dumps(content))
        shown.set_input_files("#load", tmp_path / "bad.json")
        shown.get_by_text(says).wait_for()
        assert shown.locator("#marked-count").inner_text() == "1 to keep, 1 to remove"
    with shown.expect_download() as saving:
        shown.click("#save")
    assert json.loads(Path(saving.value.path()).read_text())["remove"] == ["not on this page"]


def background(page: Any) -> str:
    found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


def test_light_and_dark(out: Path, opener: Opener) -> None:
    light, dark = "rgb(246, 247, 249)", "rgb(17, 21, 26)"
    assert background(opener.open(out / "report.html", color_scheme="light")) == light
    shown = opener.open(out / "report.html", color_scheme="dark")
    assert background(shown) == dark
    assert shown.locator("#theme").get_attribute("aria-pressed") == "true"
    shown.click("#theme")
    assert background(shown) == light
    shown.reload()
    assert background(shown) == light, "the choice is remembered"


def contrast_of(button: Any) -> float:
    """Of the button's own colours, as the browser shows them now."""
    colors = button.evaluate("node => [getComputedStyle(node).color, getComputedStyle(node).backgroundColor]")
    text, behind = (f"#{''.join(f'{int(part):02x}' for part in re.findall(r'[0-9]+', c))}" for c in colors)
    return contrast(text, behind)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_buttons_can_be_read_after_a_click_with_the_pointer_on_them(
    scheme: str, out: Path, opener: Opener
) -> None:
    shown = opener.open(out / "report.html", color_scheme=scheme)
    for name in ("#cards [data-keep=true]", "#cards [data-keep=false]", "#theme", "#theme", "#save"):
        button = shown.locator(name).first
        button.hover()
        assert contrast_of(button) >= 4.5, f"{name} before the click"
        if name != "#save":
            button.click()
        assert button.evaluate("node => node.matches(':hover')")
        assert contrast_of(button) >= 4.5, name


def test_fits_a_phone(out: Path, opener: Opener) -> None:
    shown = opener.open(out / "report.html", viewport={"width": 360, "height": 740}, has_touch=True)
    assert shown.evaluate("document.documentElement.scrollWidth") == 360
    tops = [shown.locator(name).bounding_box()["y"] for name in ("#previous", "#next")]
    assert tops[0] == tops[1], "on one line"
    shown.locator("#cards [data-keep=true]").first.tap()
    assert shown.locator("#marked-count").inner_text() == "1 to keep, 0 to remove"


def test_who_is_removed_can_be_seen_and_touched_on_a_phone(out: Path, opener: Opener) -> None:
    shown = opener.open(out / "report.html", viewport={"width": 390, "height": 844}, has_touch=True)
    assert shown.locator(".matrix th:visible").all_inner_texts()[:4] == ["called", "Label", "Removed", "1"]
    assert shown.evaluate(
        "(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)"
        "(document.querySelector('.matrix').parentNode)"
    )
    boxes = [link.bounding_box() for link in shown.locator(".matrix a").all()]
    assert len(boxes) == 4
    assert min(min(box["width"], box["height"]) for box in boxes) >= 24
    shown.locator("summary:has(#votes)").click()
    votes = shown.locator(".agreement tbody tr").first.locator(".share").first.bounding_box()
    assert votes["x"] + votes["width"] <= 390 - 2 * 16, "votes are seen without scrolling"
    wide = opener.open(out / "report.html")
    heads = wide.locator(".matrix th:visible").all_inner_texts()
    assert heads[:6] == ["called", "Label", "Samples", "Removed", "Share", "1"]


def test_without_javascript_the_evidence_is_there(out: Path, opener: Opener) -> None:
    shown = opener.open(out / "report.html", java_script_enabled=False)
    assert shown.locator("h1").inner_text().startswith("60 of 1,797")
    assert shown.locator(".without-script .card").count() == 24 + 12
    assert shown.locator(".without-script img").first.is_visible()
    assert shown.locator(".means img").count() == 12
    assert shown.locator("#save").is_hidden()
    assert shown.locator("#theme").is_hidden()


HOSTILE = (
    *(name for name in NASTY if "\udcff" not in name and len(name) < 1000),
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "javascript:alert(1)",
    "<svg/onload=alert(1)>",
    "\u2028\u2029]]>${alert(1)}`",
    "__proto__",
)


@pytest.mark.parametrize("kind", ["image", "text", "rows"])
def test_names_full_of_markup_do_nothing(kind: Any, opener: Opener, tmp_path: Path) -> None:
    n = 20 * len(HOSTILE)
    pixels = np.zeros((n, 4, 4, 3), dtype=np.uint8)
    columns = tuple((f"{name}{i}", name) for i, name in enumerate(HOSTILE))

    def show(index: int) -> Preview:
        if kind == "image":
            return Preview(image=pixels[index])
        return Preview(text=HOSTILE[index % len(HOSTILE)] * 3) if kind == "text" else Preview(columns=columns)

    dataset = make(
        kind,
        show,
        n=n,
        names=[f"{i}{name}" for i, name in enumerate(HOSTILE)],
        ids=[f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(n)],
        features=pixels if kind == "image" else None,
    )
    dataset = dataclasses.replace(dataset, name=HOSTILE[1])
    report = tmp_path / "report.html"
    report.write_text(page(dataset, judged(dataset, range(0, n, 2)), command=HOSTILE[0]), encoding="utf-8")
    shown = opener.open(report)
    for _ in range(3):
        shown.click("[data-all=remove]")
        shown.locator("#cards .card").first.focus()
        shown.keyboard.press("k")
        shown.click("#next")
    strange = shown.evaluate(
        'document.querySelectorAll(\'img:not([src^="data:image/"]), svg:not(.chart), iframe, object, '
        "[onload], [onerror], [onmouseover]').length"
    )
    assert strange == 0
    assert shown.evaluate("[...document.scripts].filter(s => s.type !== 'application/json').length") == 1
    assert shown.evaluate("Object.keys(Object.prototype).length") == 0
    shown.select_option("#choose-order", "id")
    text = shown.locator("main").inner_text()
    assert "<svg/onload=alert(1)>" in text
    with shown.expect_download() as saving:
        shown.click("#save")
    saved = json.loads(Path(saving.value.path()).read_text(encoding="utf-8"))
    assert set(saved["remove"]) | set(saved["keep"]) <= set(dataset.ids)
    assert len(saved["remove"]) > n // 3


def test_ten_thousand_samples_are_quick(opener: Opener, tmp_path: Path) -> None:
    n = 10_200
    pixels = np.random.default_rng(0).integers(0, 256, (n, 8, 8, 3), dtype=np.uint8)
    dataset = make("image", lambda i: Preview(image=pixels[i]), n=n, features=pixels)
    report = tmp_path / "report.html"
    report.write_text(page(dataset, judged(dataset, range(10_000))), encoding="utf-8")
    start = time.perf_counter()
    shown = opener.open(report)
    assert shown.locator("#page-of").inner_text() == "of 417"
    shown.fill("#page-number", "400")
    shown.press("#page-number", "Enter")
    assert shown.evaluate("chunks.size") < 12, "pictures are decoded when they are wanted"
    shown.select_option("#choose-label", "1")
    shown.click("[data-all=keep]")
    took = shown.evaluate(
        "(() => { const start = performance.now(); choose(); markAll(true); showPage(100);"
        " return performance.now() - start; })()"
    )
    assert took < 1500, "milliseconds to filter, mark and show ten thousand"
    assert time.perf_counter() - start < 30
