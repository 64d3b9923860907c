"""docs/results.md and its archive say what was recorded: their tables are computed again from the files.

So is the ablation of ISPL.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from unpoison.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
FULL_PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "archive" / "results-6000.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```console\n\$ (unpoison [^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PRINTED = [*BLOCK.findall(FULL_PAGE), *BLOCK.findall(PAGE)]
RECORDED = ROOT / "results" / "laptop"
HELD_OUT = ROOT / "results" / "held-out" / "laptop"
FRESH = ROOT / "results" / "fresh" / "laptop"
FRESH_2 = ROOT / "results" / "fresh-2" / "laptop"
FRESH_3 = ROOT / "results" / "fresh-3" / "laptop"
FRESH_3_AGAIN = ROOT / "results" / "fresh-3-again" / "laptop"
ANOTHER_PROCESSOR = ROOT / "results" / "another-processor" / "laptop"
DEFENDED = 0.01
TOOK_HOLD = 0.1


def rows_of(header: str, nth: int = 0, *, page: str = PAGE) -> list[list[str]]:
    """The cells of the ``nth`` table whose first line is ``header``, a list a row."""
    found = re.findall(re.escape(header) + r"\n\|[-|]+\n((?:\|.*\n)+)", page)
    assert len(found) > nth, f"no table {header}"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[nth].splitlines()]


def result(scenario: str, defense: str, folder: Path = RECORDED) -> dict[str, Any]:
    """The one result of a defense on a scenario."""
    (path,) = (folder / scenario.strip("`")).glob(f"{defense}-seed*.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["result"]
    return found


def takes_hold(scenario: str, folder: Path) -> bool:
    return bool(result(scenario, "nothing", folder)["tmr"] > TOOK_HOLD)


def holding_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if takes_hold(path.name, folder)}


def is_defended(scenario: str, defense: str, folder: Path) -> bool:
    return bool(result(scenario, defense, folder)["tmr"] < DEFENDED)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def test_the_page_shows_tables() -> None:
    assert [command.split()[3] for command, _ in BLOCK.findall(FULL_PAGE)] == ["reproduction", "components"]
    archived = [command.split()[3] for command, _ in BLOCK.findall(PAGE)]
    assert archived == ["comparison", "summary", *["comparison"] * 5]


@pytest.mark.parametrize(("command", "output"), PRINTED, ids=[command.split()[3] for command, _ in PRINTED])
def test_tables_are_what_their_command_prints(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    assert [line.rstrip() for line in done.stdout.strip().splitlines()] == output.strip().splitlines()


def test_at_a_glance() -> None:
    header = "| attacks | rule | defended | at epsilon 20 | perfect filter | both |"
    rows = rows_of(header)
    folders = [RECORDED, HELD_OUT, FRESH, FRESH_2, FRESH_3, FRESH_3_AGAIN]
    for (name, _, *told), folder in zip(rows, folders, strict=True):
        holding = holding_in(folder)
        ours = {scenario for scenario in holding if is_defended(scenario, "expansion", folder)}
        plentiful = {scenario for scenario in holding if scenario.endswith("eps20")}
        assert told[:2] == [
            f"{len(ours)} of {len(holding)}",
            f"{len(ours & plentiful)} of {len(plentiful)}",
        ], name
        if any(told[2:]):
            perfect = {scenario for scenario in holding if is_defended(scenario, "oracle", folder)}
            assert told[2:] == [str(len(perfect)), str(len(ours & perfect))], name


def test_which_attacks_take_hold() -> None:
    header = "| scenario | seed | planted | accuracy | TMR | ASR | TMR, perfect filter | takes hold |"
    rows = rows_of(header)
    assert {row[0].strip("`") for row in rows} == {path.name for path in RECORDED.iterdir()}
    for scenario, *told in rows:
        plain, perfect = result(scenario, "nothing"), result(scenario, "oracle")
        rates = [percent(plain[name]) for name in ("accuracy", "tmr", "asr")] + [percent(perfect["tmr"])]
        holds = "yes" if takes_hold(scenario, RECORDED) else "no"
        assert told == [str(plain["seed"]), str(plain["planted"]), *rates, holds], scenario


@pytest.mark.parametrize(
    ("nth", "folder"),
    [(0, RECORDED), (1, HELD_OUT), (2, FRESH), (3, FRESH_2), (4, FRESH_3_AGAIN)],
    ids=["recorded", "held out", "fresh", "fresh 2", "fresh 3 again"],
)
def test_expansion_where_an_attack_takes_hold(nth: int, folder: Path) -> None:
    header = "| scenario | TMR before | after | perfect filter | found | clean removed, % | cost | defended |"
    check_rows(rows_of(header, nth), folder, ("nothing", "expansion", "oracle"))


def test_expansion_where_a_perfect_filter_was_not_run() -> None:
    header = "| scenario | TMR before | after | found | clean removed, % | cost | defended |"
    check_rows(rows_of(header), FRESH_3, ("nothing", "expansion"))


def check_rows(rows: list[list[str]], folder: Path, defenses: tuple[str, ...]) -> None:
    """That the rows tell, of each attack that takes hold, what is left by ``defenses`` and what ours does."""
    assert {row[0].strip("`") for row in rows} == holding_in(folder)
    for scenario, *told in rows:
        ours = result(scenario, "expansion", folder)
        cost = (ours["defense_cost"]["trained"] + ours["defense_cost"]["scored"] / 3) / ours["n"]
        assert told == [
            *(percent(result(scenario, by, folder)["tmr"]) for by in defenses),
            f"{ours['planted'] - ours['false_negatives']} of {ours['planted']}",
            f"{100 * ours['false_positive_rate']:.2f}",
            f"{cost:.1f}",
            "yes" if is_defended(scenario, "expansion", folder) else "no",
        ], scenario


def test_two_processors() -> None:
    header = "| scenario | undefended: AMD | Intel | perfect filter: AMD | Intel | `expansion`: Intel |"
    for scenario, *told in rows_of(header):
        assert told == [
            percent(result(scenario, by, folder)["tmr"])
            for by, folder in [
                ("nothing", RECORDED),
                ("nothing", ANOTHER_PROCESSOR),
                ("oracle", RECORDED),
                ("oracle", ANOTHER_PROCESSOR),
                ("expansion", RECORDED),
            ]
        ], scenario


def test_how_many_are_defended_on_another_processor() -> None:
    holding = holding_in(ANOTHER_PROCESSOR)
    could_be = [name for name in holding if is_defended(name, "oracle", ANOTHER_PROCESSOR)]
    defended = [name for name in could_be if is_defended(name, "expansion", RECORDED)]
    assert (
        f"On the Intel {len(holding)} of the 18 hold, a perfect filter defends {len(could_be)} of them, and "
        f"`expansion` {len(defended)} of these {len(could_be)}" in PAGE
    )


@pytest.mark.parametrize(
    "folder",
    [HELD_OUT, FRESH, FRESH_2, FRESH_3, FRESH_3_AGAIN],
    ids=["held out", "fresh", "fresh 2", "fresh 3", "fresh 3 again"],
)
def test_attacks_that_do_not_take_hold_are_told(folder: Path) -> None:
    untaken = [path.name for path in folder.iterdir() if not takes_hold(path.name, folder)]
    assert all(f"`{name}`" in PAGE for name in untaken)


@pytest.mark.parametrize(
    ("nth", "scenario"), [(0, "gtsrb-watermark-2-13-eps10"), (1, "cifar10-watermark-3-5-eps10")]
)
def test_the_ablation_of_the_papers_method(nth: int, scenario: str) -> None:
    lines = (ROOT / "results" / "ispl_ablation.jsonl").read_text(encoding="utf-8").splitlines()
    header = "| variant | cost in epochs | found | clean removed | TMR | accuracy |"
    assert {variant.strip("`"): told for variant, *told in rows_of(header, nth)} == {
        found["variant"]: [
            f"{found['cost']:.1f}",
            f"{100 * found['found']:.0f}%",
            *(f"{100 * found[name]:.1f}%" for name in ("clean_removed", "tmr", "accuracy")),
        ]
        for found in map(json.loads, lines)
        if found["scenario"] == scenario and found["variant"] != "undefended"
    }


VARIANTS = ROOT / "results" / "full-variants"


def test_the_optimizer_and_the_picture() -> None:
    header = (
        "| optimizer in the defense | picture | planted by component, three restarts | TMR | false positives "
        "| false negatives |"
    )
    folders = [VARIANTS / "nesterov" / "full", VARIANTS / "drawings" / "full", ROOT / "results" / "full"]
    for (_, _, *told), folder in zip(rows_of(header, page=FULL_PAGE), folders, strict=True):
        run = result("gtsrb-watermark-1-2-eps10", "ispl-paper", folder)
        assert told == [
            ", ".join(" ".join(map(str, restart[:-1])) for restart in run["planted_by_component"]),
            percent(run["tmr"]), str(run["false_positives"]), str(run["false_negatives"]),
        ]  # fmt: skip
    before = result("cifar10-watermark-1-3-eps10", "ispl-paper", folders[0])
    told_of_it = (
        f"TMR {percent(before['tmr'])}, {before['false_positives']:,} false positives (the paper: 3,746), "
        f"{before['false_negatives']} false negatives (5)"
    )
    assert told_of_it in FULL_PAGE.replace("\n", " ")


def test_the_variants_of_ispl() -> None:
    header = "| picture | variant | restart 0 | restart 1 | restart 2 | components with more than five |"
    text = (ROOT / "results" / "ispl_variants.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    names = {"letter A (ours)": "ours", "peace sign (official)": "peace.png"}
    rows = rows_of(header, page=FULL_PAGE.replace("\\|", "/"))
    for picture, variant, *told in rows:
        runs = {
            line["restart"]: line
            for line in lines
            if line["picture"] == names[picture] and line["variant"] == variant
        }
        shown = [runs[k]["planted_by_component"] if k in runs else [] for k in range(3)]
        assert told == [
            *(f"{' '.join(map(str, row[:-1]))} / {row[-1]}" if row else "" for row in shown),
            ", ".join(str(runs[k]["voters_that_met_it"]) for k in sorted(runs)),
        ], (picture, variant)
    assert len(rows) == len({(line["picture"], line["variant"]) for line in lines})


def test_which_attacks_were_tried_at_full_size() -> None:
    """Every undefended run that is recorded is told, whether its attack took hold or not."""
    tried = next(iter(re.findall(r"### Which attacks were tried\n(.*?)\n## ", FULL_PAGE, re.DOTALL)))
    for path in (ROOT / "results" / "full").glob("*/nothing-seed*.json"):
        run = json.loads(path.read_text(encoding="utf-8"))["result"]
        if run["scenario"].startswith("gtsrb-dirty-label") and run["seed"] == 0:
            assert run["tmr"] < 0.0415
        else:
            assert percent(run["tmr"]) in tried, path


def test_readme_tells_what_reproduces_on_gtsrb() -> None:
    full = ROOT / "results" / "full"
    names = ("gtsrb-watermark-1-2-eps10", "gtsrb-dirty-label-1-0-eps10")
    runs = [result(name, "ispl-paper", full) for name in names]
    (before,) = (full / names[1]).glob("nothing-seed1.json")
    undefended = [
        result(names[0], "nothing", full)["tmr"],
        json.loads(before.read_text(encoding="utf-8"))["result"]["tmr"],
    ]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    first, second = (f"{100 * tmr:.0f}" for tmr in undefended)
    left, also_left = (percent(run["tmr"]) for run in runs)
    assert (
        f"mislead {first} and {second}% of an undefended network's images mislead {left} and {also_left}%"
        in readme
    )
    assert {percent(run["false_positive_rate"]) for run in runs} == {"1.2"}
    assert "for 1.2% of the clean signs" in readme


def test_the_authors_code_beside_ours() -> None:
    file = ROOT / "results" / "authors_agreement.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    ours = {line["nesterov"]: line for line in lines}

    def told(name: str, counts: dict[str, Any]) -> list[str]:
        *found, none = counts["planted_by_component"]
        components = f"{' '.join(map(str, found))} \\| {none}"
        return [name, components, str(counts["false_positives"]), str(counts["false_negatives"])]

    rows = rows_of("| code | planted by component | false positives | false negatives |", page=FULL_PAGE)
    joined = [" | ".join(row).replace("\\ |", "\\|") for row in rows]
    assert joined == [
        " | ".join(told("the authors'", ours[False]["theirs"])),
        " | ".join(told("ours, plain momentum as theirs", ours[False]["ours"])),
        " | ".join(told("ours, Nesterov momentum", ours[True]["ours"])),
    ]
    text = " ".join(FULL_PAGE.split())
    assert f"alike about {percent(ours[False]['same_decision'])}% of the signs" in text
    assert f"remove {ours[False]['removed_by_both']} together" in text


def test_other_families() -> None:
    header = "| scenario | undefended TMR | perfect filter | `ispl-reduced` | found | clean removed |"
    folder = ROOT / "results" / "families" / "laptop"
    rows = rows_of(header, page=FULL_PAGE)
    assert {row[0].strip("`") for row in rows} == {path.name for path in folder.iterdir()}
    for scenario, undefended, *told in rows:
        assert undefended == percent(result(scenario, "nothing", folder)["tmr"])
        if told == ["-"] * 4:
            continue
        ours = result(scenario, "ispl-reduced", folder)
        assert told == [
            percent(result(scenario, "oracle", folder)["tmr"]),
            percent(ours["tmr"]),
            f"{ours['planted'] - ours['false_negatives']} of {ours['planted']}",
            f"{percent(ours['false_positive_rate'])}%",
        ], scenario
    runs = [
        result("cifar10-sleeper-agent-0-8", by, folder)["attacker_asr"]
        for by in ("nothing", "oracle", "ispl-reduced")
    ]
    first, second, third = map(percent, runs)
    sentence = f"is {first}% undefended, {second}% with a perfect filter and {third}% after the defense"
    assert sentence in " ".join(FULL_PAGE.split())


def test_the_first_development_sets_of_groups() -> None:
    page = (ROOT / "docs" / "archive" / "research.md").read_text(encoding="utf-8")
    folder = ROOT / "results" / "development" / "full"
    sets = ["gtsrb-development-1", "gtsrb-development-2"]
    expected, costs, planted, natural = [], [], [], []
    for name in sets:
        before, after = result(name, "nothing", folder), result(name, "groups", folder)
        assert after["false_positives"] == 0
        costs.append((after["defense_cost"]["trained"] + after["defense_cost"]["scored"] / 3) / after["n"])
        for undefended, each in zip(before["attacks"], after["attacks"], strict=True):
            found = f"{each['found']} of {each['planted']}"
            expected.append([f"`{each['attack']}`", found, percent(undefended["tmr"]), percent(each["tmr"])])
        for group in after["groups"]:
            if group["removed"]:
                planted.append(group["evidence"]["kept"])
            elif not group["planted"]:
                natural.append(group["evidence"]["kept"])
    assert rows_of("| attack | found | TMR undefended, % | TMR after, % |", page=page) == expected
    said = " ".join(page.split())
    assert f"removed keep {max(planted):.2f} of their distance at most" in said
    assert f"the {len(natural)} groups without a planted sign {min(natural):.2f} at least" in said
    assert "costs {:.1f} and {:.1f} passes".format(*sorted(costs)) in said


def test_the_second_development_sets_of_groups() -> None:
    page = (ROOT / "docs" / "archive" / "research.md").read_text(encoding="utf-8")
    folder = ROOT / "results" / "development-2" / "full"
    runs = [result(name, "groups", folder) for name in ("cifar10-development-1", "gtsrb-development-3")]
    assert rows_of("| attack | found | TMR after, % |", page=page) == [
        [f"`{each['attack']}`", f"{each['found']} of {each['planted']}", percent(each["tmr"])]
        for run in runs
        for each in run["attacks"]
    ]
    first, second = (
        (run["defense_cost"]["trained"] + run["defense_cost"]["scored"] / 3) / run["n"] for run in runs
    )
    lost = sum(run["false_positives"] for run in runs)
    told = f"{lost} clean images are lost in both together, for {first:.1f} and {second:.1f} passes"
    assert told in " ".join(page.split())
