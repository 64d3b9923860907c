"""Every experiment of the paper by name: 165 of its main table and those of its appendix.

A scenario says what is attacked, and with what; how much data and which network is a matter of the scale
(:mod:`unpoison.evaluation.scales`). What the paper leaves open is settled here: which watermark a pair gets,
the classes of the Sleeper Agent runs, the three scenarios of the ablation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import PurePath
from typing import Any

from unpoison.attacks.making import ALL_TO_ALL, ALL_TO_ONE, DRAWINGS, ONE_TO_ONE
from unpoison.attacks.official import SCENARIO_SEEDS
from unpoison.attacks.options import meant
from unpoison.errors import InputError

SEEDS = (0, 1, 2)
"""Seeds of the runs of a scenario; what is reported is their median."""
EPSILONS = (5, 10, 20)
"""Poisoned share of the attacked class, in percent."""
PAPER_EPOCHS = 100

CIFAR10_PAIRS = ((0, 2), (1, 3), (2, 5), (3, 5), (3, 7), (7, 4), (8, 6), (9, 2))
GTSRB_PAIRS = ((0, 2), (1, 2), (1, 0), (2, 13), (38, 4), (31, 24), (15, 29), (9, 18))
NETWORKS = {"cifar10": "preactresnet18", "gtsrb": "resnet32", "imagenette": "resnet56"}

SUMMARY = "summary"
ABLATION_TABLES = ("ablation-accuracy", "ablation-tmr")
ABLATION_SHARES = (1, 2, 4, 8, 16)
"""alpha and beta of the ablation are one over these."""
ABLATION_BASES = (
    "cifar10-dirty-label-0-2-eps10",
    "cifar10-dirty-label-7-4-eps10",
    "cifar10-clean-label-l2-2-eps10",
)
"""Ours: the paper averages over "three scenarios of CIFAR-10 DLBD and CLBD" and does not name them."""
GTSRB_ABLATION_TABLES = ("gtsrb-ablation-accuracy", "gtsrb-ablation-tmr")
GTSRB_ABLATION_BASES = ("gtsrb-watermark-1-2-eps10",)
"""Ours: the same grid on GTSRB, where a CPU can run it; one restart."""
SLEEPER_RUNS = 24
SLEEPER_OFFSETS = (8, 3, 6)
"""Ours: from source to target in the first ten runs (with the paper's example, horse to dog), and so on."""


@dataclass(frozen=True)
class Scenario:
    """One experiment; ``attack`` and ``options`` are those of ``unpoison poison``."""

    name: str
    dataset: str
    family: str
    """The kind of attack as the paper's tables divide it, such as ``watermark`` or ``all-to-one``."""
    attack: str
    options: Mapping[str, Any] = field(hash=False)
    tables: tuple[str, ...]
    """The tables of the paper that it is a row of, or counted in."""
    network: str
    """The paper's."""
    epochs: int = PAPER_EPOCHS
    """Of the final training, in the paper."""
    defense: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Settings of ISPL that differ from the usual ones (the ablation)."""
    official: bool = False
    """Whether the authors' own marks and images are known (:mod:`unpoison.attacks.official`)."""
    second_recipe: str | None = None
    """How a second victim is trained on what the defense keeps: in the attacker's way (Sleeper Agent)."""
    seeds: tuple[int, ...] = SEEDS
    attacks: tuple[Scenario, ...] = ()
    """Several that share one training set, each on classes of its own; ``attack`` and ``options`` are then
    nobody's."""

    @property
    def victim(self) -> tuple[Any, ...]:
        """What an undefended network is trained on, and how: the same for every cell of an ablation."""
        return self.dataset, self.attack, tuple(sorted(self.options.items())), self.network, self.epochs

    @property
    def epsilon(self) -> int:
        """In percent."""
        return round(100 * float(self.options.get("epsilon", 0.0)))

    def options_for(self, seed: int) -> dict[str, Any]:
        """The options of the run with this seed; the authors have one scenario for each of the first three.

        >>> by_name("cifar10-dirty-label-0-2-eps5").options_for(1)["official-seed"]
        1000
        """
        if self.official and seed in SEEDS:
            return {**self.options, "official-seed": SCENARIO_SEEDS[SEEDS.index(seed)]}
        return dict(self.options)


WITH_IMAGES = ("clean-label", "watermark")
"""Families of attacks that use images which may be the official ones or our own."""
OFFICIAL, OURS = "official", "ours"
WATERMARK_FILES = {
    "peace": "peace.png",
    "letter-a": "letter_A.png",
    "bullet-holes": "bullet_holes.png",
    "patch": "trigger_10.png",
}
"""The official watermarks (Armory's file names), by the drawing of ours that stands in for each."""


def with_images(options: Mapping[str, Any], *, arrays: str, watermarks: str) -> dict[str, Any]:
    """The options of an attack with official images where there are any for it.

    >>> with_images({"trigger": "peace", "epsilon": 0.1}, arrays="", watermarks="pictures")
    {'epsilon': 0.1, 'png': 'pictures/peace.png'}
    """
    if "perturbation" in options and arrays:
        return {**options, "arrays": arrays}
    drawing = options.get("trigger")
    if drawing in WATERMARK_FILES and watermarks:
        rest = {name: value for name, value in options.items() if name != "trigger"}
        return {**rest, "png": str(PurePath(watermarks) / WATERMARK_FILES[drawing])}
    return dict(options)


def by_name(name: str) -> Scenario:
    """The scenario of that name.

    >>> by_name("gtsrb-watermark-38-4-eps20").options
    {'mode': 'one-to-one', 'source': 38, 'target': 4, 'trigger': 'peace', 'epsilon': 0.2}
    """
    known = _by_name()
    if name in known:
        return known[name]
    raise InputError(
        f"no scenario is called {name!r}; {meant(name, known)}unpoison bench list prints all {len(known)}"
    )


def of_table(table: str) -> tuple[Scenario, ...]:
    """The scenarios of one table of the paper, in its order.

    >>> len(of_table("summary"))
    165
    """
    if table not in tables():
        raise InputError(
            f"no table is called {table!r}; {meant(table, tables())}the tables are: {', '.join(tables())}"
        )
    return tuple(scenario for scenario in catalog() if table in scenario.tables)


def tables() -> tuple[str, ...]:
    """The names of the paper's tables, ``summary`` first."""
    return tuple(dict.fromkeys([SUMMARY, *(table for each in catalog() for table in each.tables)]))


@cache
def _by_name() -> dict[str, Scenario]:
    from unpoison.evaluation.attack_sets import attack_sets, held_out_sets

    return {scenario.name: scenario for scenario in (*catalog(), *attack_sets(), *held_out_sets())}


@cache
def catalog() -> tuple[Scenario, ...]:
    """Every scenario: those of the main table first, then the appendix."""
    main = tuple(_main())
    return (*main, *_sleeper_agent(), *_appendix(), *_longer(main), *_ablation(main))


def _main() -> Iterator[Scenario]:
    pairs = CIFAR10_PAIRS
    yield from _family("cifar10", "dirty-label", "dirty-label", _pairs(pairs), official=True)
    to_one = {f"{k}": {"mode": ALL_TO_ONE, "target": k} for k in (2, 3, 5, 7)}
    yield from _family("cifar10", ALL_TO_ONE, "dirty-label", to_one)
    to_all = {f"{k}": {"mode": ALL_TO_ALL, "offset": k} for k in (2, 3, 5, 7)}
    yield from _family("cifar10", ALL_TO_ALL, "dirty-label", to_all)
    yield from _family("cifar10", "watermark", "watermark", _watermarked(pairs))
    changed = {
        f"{how}-{k}": {"target": k, "perturbation": how}
        for how in ("gan", "l2", "linf")
        for k in (0, 2, 4, 7, 9)
    }
    yield from _family("cifar10", "clean-label", "clean-label", changed)
    yield from _family("gtsrb", "dirty-label", "dirty-label", _pairs(GTSRB_PAIRS))
    yield from _family("gtsrb", "watermark", "watermark", _watermarked(GTSRB_PAIRS))


def _appendix() -> Iterator[Scenario]:
    squares = {case: {**options, "trigger": "square"} for case, options in _pairs(CIFAR10_PAIRS).items()}
    yield from _family("imagenette", "dirty-label", "dirty-label", squares, summarized=False)
    yield from _family("cifar10", "adaptive", "adaptive", _pairs(CIFAR10_PAIRS), summarized=False)


def _sleeper_agent() -> Iterator[Scenario]:
    """24 runs with a seed each, a pair of classes each; the authors' default is 1% of the training set.

    The paper examines two victims of each: one trained as in its main experiments, one as the attacker does.
    """
    for run in range(SLEEPER_RUNS):
        source = run % 10
        target = (source + SLEEPER_OFFSETS[run // 10]) % 10
        yield Scenario(
            f"cifar10-sleeper-agent-{source}-{target}",
            "cifar10",
            "sleeper-agent",
            "sleeper-agent",
            {"source": source, "target": target, "epsilon": 0.1},
            ("cifar10-sleeper-agent",),
            "resnet32",
            second_recipe="sleeper-agent",
            seeds=(run,),
        )


def _longer(main: tuple[Scenario, ...]) -> Iterator[Scenario]:
    """The dirty-label scenarios again, with 200 epochs on each of two networks."""
    for network in ("preactresnet18", "resnet32"):
        for base in main:
            if base.dataset == "cifar10" and base.family == "dirty-label":
                yield replace(
                    base, name=f"{base.name}-{network}-200", tables=(f"{network}-200-epochs",),
                    network=network, epochs=200,
                )  # fmt: skip


def _ablation(main: tuple[Scenario, ...]) -> Iterator[Scenario]:
    """1 / beta rounds, since beta is the share of a component; without self-training, as in the paper."""
    known = {scenario.name: scenario for scenario in main}
    for tables, bases, changes in (
        (ABLATION_TABLES, ABLATION_BASES, {}),
        (GTSRB_ABLATION_TABLES, GTSRB_ABLATION_BASES, {"restarts": 1}),
    ):
        for alpha, beta, base in product(ABLATION_SHARES, ABLATION_SHARES, bases):
            yield replace(
                known[base], name=ablation_name(base, alpha, beta), tables=tables,
                defense={"alpha": 1 / alpha, "rounds": beta, "self_training": False, **changes},
            )  # fmt: skip


def ablation_name(base: str, alpha: int, beta: int) -> str:
    """The name of a scenario with alpha and beta one over the numbers given.

    >>> ablation_name("cifar10-dirty-label-0-2-eps10", 4, 1)
    'cifar10-dirty-label-0-2-eps10-alpha-1-4-beta-1'
    """
    share = {k: "1" if k == 1 else f"1-{k}" for k in (alpha, beta)}
    return f"{base}-alpha-{share[alpha]}-beta-{share[beta]}"


def _pairs(pairs: tuple[tuple[int, int], ...]) -> dict[str, dict[str, Any]]:
    return {f"{s}-{t}": {"mode": ONE_TO_ONE, "source": s, "target": t} for s, t in pairs}


def _watermarked(pairs: tuple[tuple[int, int], ...]) -> dict[str, dict[str, Any]]:
    """Ours: the four drawings in turn, in the order of the pairs; the paper does not say which has which."""
    return {
        case: {**options, "trigger": DRAWINGS[i % len(DRAWINGS)]}
        for i, (case, options) in enumerate(_pairs(pairs).items())
    }


def _family(
    dataset: str,
    family: str,
    attack: str,
    cases: Mapping[str, Mapping[str, Any]],
    *,
    summarized: bool = True,
    official: bool = False,
) -> Iterator[Scenario]:
    """Each case at each strength."""
    for case, options in cases.items():
        for epsilon in EPSILONS:
            yield Scenario(
                f"{dataset}-{family}-{case}-eps{epsilon}",
                dataset,
                family,
                attack,
                {**options, "epsilon": epsilon / 100},
                (f"{dataset}-{family}", *((SUMMARY,) if summarized else ())),
                NETWORKS[dataset],
                official=official,
            )
