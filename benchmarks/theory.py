"""The paper's statements, put to the test by enumeration: where they hold, and where a premise is missing.

    python benchmarks/theory.py [--seed 0] [--figure linear-classifier.png]

Each line names a statement, says in how many cases it was put to the test, in how many of them it was wrong,
and what was enumerated. Where the name says "without", a premise is broken on purpose: there the statement
may be wrong, and is, which shows that the check can tell. docs/theory.md has the statements in words. The
last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import product
from operator import add
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from unpoison.core.config import IsplSettings
from unpoison.core.ispl import find_component
from unpoison.evaluation.theory.descent import (
    EXACT,
    FamilyLearner,
    check_descent,
    descend,
    shipped_betas,
    swap_would_help,
)
from unpoison.evaluation.theory.exact import (
    Expansion,
    Finding,
    Samples,
    check_decomposition,
    check_decomposition_of_overlaps,
    mutually_incompatible,
)
from unpoison.evaluation.theory.learners import (
    any_learner,
    every_learner,
    posterior_sampler,
    risk_minimizer,
    stump_losses,
    thresholds,
)
from unpoison.evaluation.theory.linear import (
    LinearAttack,
    Separator,
    draw_linear_classifier,
    margin_learner,
    max_margin,
    poisoned_draw,
)
from unpoison.evaluation.theory.separation import (
    all_are_homogeneous,
    check_separation,
    incompatible_as_wholes,
    incompatible_one_way,
    separate,
    smallest_are_homogeneous,
    strict_as_wholes,
    strictly_incompatible,
)
from unpoison.evaluation.theory.voting import (
    Components,
    check_votes,
    component_sets,
    has_property,
    mistakes_between,
)
from unpoison.seeds import Seeds
from unpoison.types import FloatArray, LabelArray

ALPHAS = (Fraction(1, 4), Fraction(1, 2), Fraction(1))
SLOWLY = (1.0, 0.9, 0.8, 0.7, 0.6)
Line = tuple[str, str, Finding]
"""A name for the JSON, what was enumerated, and what came out."""


def total(findings: Iterable[Finding]) -> Finding:
    return reduce(add, findings, Finding(0, 0))


def tally(outcomes: Iterable[bool]) -> Finding:
    return total(Finding(1, int(not outcome)) for outcome in outcomes)


def any_part(_expansion: Expansion, _a: Samples, _b: Samples) -> bool:
    return True


def decomposition(seeds: Seeds) -> Iterator[Line]:
    rng = seeds.stream("decomposition")
    expansions = [
        Expansion(rng.integers(0, 3, size=5).tolist(), any_learner(5, rng=rng), alpha=alpha)
        for alpha in ALPHAS
        for _ in range(20)
    ]
    what = f"5 samples, {len(expansions)} arbitrary learners, alpha 1/4, 1/2, 1"
    yield "lemma", f"disjoint sets, {what}", total(map(check_decomposition, expansions))
    overlapping = total(check_decomposition(e, disjoint=False) for e in expansions)
    yield "lemma without disjoint sets", "sets that overlap, as the lemma allows", overlapping
    corrected = total(map(check_decomposition_of_overlaps, expansions))
    yield "lemma, corrected for overlaps", "any two sets", corrected


def separation(seeds: Seeds) -> Iterator[Line]:
    every = [Expansion((0, 0, 1), learner, alpha=Fraction(1)) for learner in every_learner(3)]
    rng = seeds.stream("separation")
    drawn = [
        Expansion(rng.integers(0, 2, size=4).tolist(), any_learner(4, rng=rng), alpha=alpha)
        for alpha in ALPHAS
        for _ in range(500)
    ]
    sources = {"all 4,096 learners on 3 samples": every, "1,500 arbitrary learners on 4 samples": drawn}
    claims = {
        "smallest minimisers": (mutually_incompatible, smallest_are_homogeneous),
        "all minimisers, strict": (strictly_incompatible, all_are_homogeneous),
        "smallest minimisers without incompatibility": (any_part, smallest_are_homogeneous),
        "smallest minimisers without completeness": (incompatible_as_wholes, smallest_are_homogeneous),
        "smallest minimisers without mutuality": (incompatible_one_way, smallest_are_homogeneous),
        "all minimisers without strictness": (mutually_incompatible, all_are_homogeneous),
        "all minimisers without strictness of parts": (strict_as_wholes, all_are_homogeneous),
    }
    for name, (premise, conclusion) in claims.items():
        for source, expansions in sources.items():
            found = total(check_separation(e, premise, conclusion) for e in expansions)
            yield name, f"cuts into A and B, {source}", found
    yield from conventions()
    yield from consistent_learner()


def conventions() -> Iterator[Line]:
    """Samples labelled by two opposite conventions, and a learner that tells them apart by counting."""
    parts: list[bool] = []
    wholes: list[bool] = []
    for n, alpha in product((6, 8, 10), ALPHAS):
        convention = [i % 2 for i in range(n)]
        a = frozenset(range(n // 2))
        labels = [c if i in a else 1 - c for i, c in enumerate(convention)]
        learner = posterior_sampler([convention, [1 - c for c in convention]], labels, prior=1)
        expansion = Expansion(labels, learner, alpha=alpha)
        parts += [part <= a or part.isdisjoint(a) for part in separate(expansion)]
        wholes.append({*separate(expansion, largest=True)} == {a, expansion.samples - a})
    yield "procedure", "parts taken from 6 to 10 samples of two conventions are of one", tally(parts)
    yield "procedure, largest parts", "taken largest, they are the two conventions", tally(wholes)


def consistent_learner() -> Iterator[Line]:
    """For a learner that fits what it can, the theorem says nothing."""
    expansions = [
        Expansion(labels, risk_minimizer(thresholds(6), labels), alpha=alpha)
        for labels in product((0, 1), repeat=6)
        if 0 < sum(labels) < 6
        for alpha in ALPHAS
    ]
    what = "every labelling of 6 samples, risk minimiser over thresholds"
    strict = sum(check_separation(e, strictly_incompatible, any_part).cases for e in expansions)
    found = total(check_separation(e, any_part, smallest_are_homogeneous) for e in expansions)
    yield "smallest minimisers of a consistent learner", f"cuts with no premise at all, {what}", found
    cuts = total(check_separation(e, any_part, any_part) for e in expansions).cases
    yield "no strict incompatibility for it", f"cuts, {what}", Finding(cuts, strict)


def descent(seeds: Seeds) -> Iterator[Line]:
    steps = (*SLOWLY, *[SLOWLY[-1]] * 20)
    cases: dict[str, tuple[IsplSettings, int]] = {
        "descent": (EXACT, 0),
        "descent with momentum 1/2, which the paper excludes": (replace(EXACT, momentum=0.5), 0),
        "descent without alpha 1": (replace(EXACT, alpha=0.5), 0),
        "descent without plain Trim (the per-class floor)": (replace(EXACT, class_floor=0.125), 0),
        "descent without the minimiser (the second best)": (EXACT, 1),
    }
    families = [family(seeds, number) for number in range(600)]
    for name, (settings, place) in cases.items():
        found = total(
            check_descent(losses, labels, SLOWLY, settings=settings, place=place, seeds=seeds.within(name, i))
            for i, (losses, labels) in enumerate(families)
        )
        yield name, "runs of 25 steps, arbitrary families of 2 to 29 hypotheses", found
    yield "the descent is the shipped find_component", "runs", tally(same_as_shipped(seeds, families))
    rows, labels = load_breast_cancer(return_X_y=True)
    losses = stump_losses(rows[:, :5], labels)
    stumps = total(check_descent(losses, labels, SLOWLY, seeds=seeds.within("stumps", i)) for i in range(5))
    yield "descent on real data", f"runs, {len(losses):,} decision stumps, 569 rows (breast cancer)", stumps
    ends = [descend(FamilyLearner(ls), ys, steps, seeds=seeds).chosen for ls, ys in families]
    optimal = (not swap_would_help(ls, end) for (ls, _), end in zip(families, ends, strict=True))
    yield "the end without a better swap (a local optimum)", "ends of the runs", tally(optimal)


def family(seeds: Seeds, number: int) -> tuple[FloatArray, LabelArray]:
    """Losses of some hypotheses: mistakes, or multiples of 1/16 without a bound, by turns."""
    rng = seeds.stream("family", number)
    shape = int(rng.integers(2, 30)), int(rng.integers(6, 40))
    losses = (rng.random(shape) < 0.6).astype(float) if number % 2 else rng.integers(0, 200, size=shape) / 16
    return losses, rng.integers(0, 3, size=shape[1])


def same_as_shipped(seeds: Seeds, families: list[tuple[FloatArray, LabelArray]]) -> Iterator[bool]:
    for losses, labels in families:
        run = descend(FamilyLearner(losses), labels, shipped_betas(len(labels), EXACT), seeds=seeds)
        everyone = np.arange(len(labels))
        shipped = find_component(
            FamilyLearner(losses), everyone, labels, settings=EXACT, round_number=0, seeds=seeds
        )
        yield np.array_equal(run.chosen, shipped)


def linear(seeds: Seeds) -> Iterator[Line]:
    def victims(
        attack: LinearAttack, says: Callable[[Separator, LinearAttack], bool], *, clean: bool
    ) -> Finding:
        sizes = (4, 8, 40, 200)
        rngs = [(n, seeds.stream("linear", attack.dimensions, n, i)) for n in sizes for i in range(10)]
        draws = (poisoned_draw(attack, n, rng=rng) for n, rng in rngs)
        return tally(says(max_margin(*(sets.clean if clean else sets.both)), attack) for sets in draws)

    for dimensions in (2, 3, 10, 100):
        attack = LinearAttack(dimensions=dimensions)
        what = f"training sets of 8 to 400 samples in {dimensions} dimensions"
        risk = victims(attack, Separator.never_wrong, clean=True)
        yield "linear: population risk 0, clean", what, risk
        yield "linear: unmoved, clean", what, victims(attack, Separator.unmoved, clean=True)
        yield "linear: TMR 1, poisoned", what, victims(attack, Separator.always_fooled, clean=False)
    for name, attack in (
        ("a signal beyond the noise", LinearAttack(signal=0.5)),
        ("a signal for each class", LinearAttack(one_signal=True)),
    ):
        found = victims(attack, Separator.always_fooled, clean=False)
        yield f"linear: TMR 1 without {name}", "training sets of 8 to 400 samples in 2 dimensions", found
    yield "linear: one sample of each kind is enough", "places on the borders", tally(extremes())
    yield from incompatible_sets(seeds)


def extremes() -> Iterator[bool]:
    """Training sets of four samples, each anywhere on the border of where it may be, in the plane."""
    attack = LinearAttack()
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    border = np.column_stack([np.cos(angles), np.sin(angles)])
    rows = np.array([[10.0, 0.0], [-10.0, 0.0], [10.0, 10.0], [-10.0, -10.0]])
    for first, second, third, fourth in product(border, border, (-1.0, 0.0, 1.0), (-1.0, 0.0, 1.0)):
        moved = rows + np.array([first, second, [third, 0.0], [fourth, 0.0]])
        yield max_margin(moved, np.array([1, -1, -1, 1])).always_fooled(attack)


def incompatible_sets(seeds: Seeds) -> Iterator[Line]:
    def check(attack: LinearAttack, alpha: Fraction, number: int) -> tuple[bool, bool]:
        """Of clean and poisoned samples, and of two parts of the clean ones."""
        rng = seeds.stream("incompatible", attack.dimensions, number)
        clean, poisoned = attack.draw(3, rng=rng), attack.poison(*attack.draw(1, rng=rng))
        rows, labels = (np.concatenate(pair) for pair in zip(clean, poisoned, strict=True))
        expansion = Expansion(labels.tolist(), margin_learner(rows, labels), alpha=alpha)
        some, others = frozenset({0, 3}), frozenset({1, 2, 4, 5})
        with_poison = mutually_incompatible(expansion, some | others, frozenset({6, 7}))
        return with_poison, mutually_incompatible(expansion, some, others)

    what = "sets of 6 clean and 2 poisoned samples, all parts"
    for dimensions in (2, 5):
        checks = [check(LinearAttack(dimensions=dimensions), alpha, i) for alpha in ALPHAS for i in range(4)]
        name = f"linear: incompatible, {dimensions} dimensions"
        yield name, what, tally(poisoned for poisoned, _ in checks)
        yield (
            "linear: so are clean and clean",
            "two parts of the clean samples of the same sets",
            tally(parts for _, parts in checks),
        )
    wide = LinearAttack(dimensions=5, radius=20.0)
    checks = [check(wide, Fraction(1, 2), number) for number in range(4)]
    yield "linear: incompatible without narrow noise", f"{what}, radius 20", tally(p for p, _ in checks)


def voting(seeds: Seeds) -> Iterator[Line]:
    def over(sizes: list[tuple[int, int]], *, most: int, own: bool = True, lacking: bool = False) -> Finding:
        sets = [c for clean, poisoned in sizes for c in component_sets(clean, poisoned, most=most)]
        return total(check_votes(components, own=own, lacking=lacking) for components in sets)

    majorities = [(clean, poisoned) for clean in range(1, 6) for poisoned in range(clean)]
    answers = "all answers of all voters, up to 4 components of up to 9 samples"
    yield "vote", answers, over(majorities, most=4)
    small = "all answers of all voters, up to 3 components"
    yield "vote without the property", small, over(majorities, most=3, lacking=True)
    yield "vote without a majority of clean samples", small, over([(2, 2), (3, 3)], most=3)
    yield "vote without knowing the own component", small, over(majorities, most=3, own=False)
    yield (
        "vote of real classifiers",
        "linear attack, 3 clean and 2 poisoned components",
        tally(real_votes(seeds)),
    )


def real_votes(seeds: Seeds) -> Iterator[bool]:
    """Right on random components with the property; components that lack it are not counted."""
    for dimensions, number in product((2, 5, 20), range(20)):
        rng = seeds.stream("votes", dimensions, number)
        sets = poisoned_draw(LinearAttack(dimensions=dimensions), 40, rng=rng)
        rows, labels = sets.both
        n_clean = len(sets.clean[1])
        components = [
            *np.array_split(rng.permutation(n_clean), 3),
            *np.array_split(n_clean + rng.permutation(len(labels) - n_clean), 2),
        ]
        predictions = [max_margin(rows[part], labels[part]).predict(rows) for part in components]
        mistakes = mistakes_between(predictions, components, labels)
        judged = Components(tuple(map(len, components)), (True, True, True, False, False))
        if has_property(judged, mistakes):
            yield judged.named_right(mistakes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, help="where to draw the linear attack (.png, .svg or .pdf)")
    options = parser.parse_args()
    started = time.process_time()
    summary: list[dict[str, object]] = []
    for statement in (decomposition, separation, descent, linear, voting):
        for name, enumerated, found in statement(Seeds(options.seed)):
            outcome = "held" if found.held else f"wrong in {found.failures:,}"
            print(f"{name:52} {found.cases:>9,} {outcome:<16} {enumerated}", flush=True)
            summary.append(
                {"statement": name, "of": enumerated, "cases": found.cases, "wrong": found.failures}
            )
    if options.figure:
        draw_linear_classifier(options.figure)
    print(json.dumps({"statements": summary, "cpu_seconds": round(time.process_time() - started)}))


if __name__ == "__main__":
    main()
