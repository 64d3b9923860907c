from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any, ClassVar
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("torch")

from unpoison.attacks.base import Samples, Truth
from unpoison.attacks.catalog import build
from unpoison.core.learner import LearnerFactory
from unpoison.core.presets import REPLACED, settings_for
from unpoison.core.result import Cost, Group
from unpoison.data.named.fetch import fetch
from unpoison.defenses.base import Decision
from unpoison.defenses.controls import RandomFilter
from unpoison.defenses.incompatibility import Incompatibility
from unpoison.errors import InputError
from unpoison.evaluation import experiment, scales
from unpoison.evaluation.bench import ON_CLEAN, BenchTask
from unpoison.evaluation.comparison import epoch_equivalents
from unpoison.evaluation.experiment import (
    Arena,
    defense_for,
    estimate_seconds,
    ispl_passes,
    poison_options,
    run_task,
    set_up,
)
from unpoison.evaluation.poisoning import Attacked, PoisonOptions, _attackers_ispl, attacked
from unpoison.evaluation.scales import FULL, LAPTOP, PAPER, Scale, Setup, with_network
from unpoison.evaluation.scenarios import NETWORKS, by_name, catalog
from unpoison.evaluation.victims import Effect, Exam
from unpoison.learners.choose import LearnerChoice
from unpoison.learners.recipes import COMPACT, SLEEPER_AGENT, Recipe
from unpoison.learners.recipes import PAPER as PAPER_RECIPES
from unpoison.learners.torch import TorchLearner
from unpoison.types import BoolArray, LabelArray

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "gtsrb_32.npz"
RECORDED = Path(__file__).resolve().parents[2] / "results" / "laptop"
SCENARIO = "gtsrb-watermark-1-2-eps20"
TINY = Setup(
    "compact", 1, limit=700,
    reduced={"rounds": 2, "restarts": 2, "first_epochs": 1, "epochs": 1, "weak_epochs": 1},
)  # fmt: skip


@pytest.fixture(scope="module")
def _gtsrb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not there")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNPOISON_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setitem(scales.SCALES, "tiny", Scale("tiny", {"gtsrb": TINY}, own_networks=False))
        patch.setattr(experiment, "attacked", with_a_small_test_set)
        fetch("gtsrb", source=SHARED)
        yield


def with_a_small_test_set(source: str, options: PoisonOptions, *, kept: Path) -> Attacked:
    """Judging 12,630 images takes longer than all else here."""
    found = attacked(source, options, kept=kept)
    test = found.test
    assert test is not None
    some = np.arange(0, len(test), 20)
    return replace(found, test=test.changed(test.features[some], test.labels[some]))


def result_of(defense: str, tmp_path: Path) -> dict[str, Any]:
    return run_task(BenchTask(SCENARIO, "tiny", defense, 0), work=tmp_path)


@pytest.mark.usefixtures("_gtsrb")
def test_controls_measure_what_they_should(tmp_path: Path) -> None:
    nothing, oracle = (result_of(name, tmp_path) for name in ("nothing", "oracle"))
    assert nothing["planted"] > 0
    assert (nothing["false_positives"], nothing["false_negatives"]) == (0, nothing["planted"])
    assert (oracle["false_positives"], oracle["false_negatives"]) == (0, 0)
    assert oracle["auc"] == 1.0
    assert nothing["victim_cost"]["trained"] == 700
    assert oracle["victim_cost"]["trained"] == 700 - oracle["planted"]
    assert 0.02 < nothing["accuracy"] < 1.0
    assert nothing["scenario"] == SCENARIO


@pytest.mark.usefixtures("_gtsrb")
def test_the_same_task_gives_the_same_result(tmp_path: Path) -> None:
    first, again = (result_of("spectral-signatures", tmp_path) for _ in range(2))
    for result in (first, again):
        for cost in ("defense_cost", "victim_cost"):
            del result[cost]["seconds"]
    assert first == again
    assert first["true_positive_rate"] is not None


@pytest.mark.usefixtures("_gtsrb")
def test_on_clean_data_nothing_is_planted(tmp_path: Path) -> None:
    result = result_of("activation-clustering+clean", tmp_path)
    assert result["planted"] == result["false_negatives"] == 0
    assert result["false_positives"] > 0  # it always removes a cluster
    assert result["true_positive_rate"] is None
    assert result["auc"] is None


@pytest.mark.usefixtures("_gtsrb")
def test_a_defense_of_many_models_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the result tells where it put what was planted."""
    task = BenchTask(SCENARIO, "tiny", "ispl-reduced", 1)
    trained: list[int] = []
    fit = TorchLearner.fit

    def counted(learner: TorchLearner, indices: Any, **how: Any) -> None:
        if len(trained) == 11:
            trained.append(0)
            raise KeyboardInterrupt
        trained.append(len(indices))
        fit(learner, indices, **how)

    monkeypatch.setattr(TorchLearner, "fit", counted)
    with pytest.raises(KeyboardInterrupt):
        run_task(task, work=tmp_path)
    result = run_task(task, work=tmp_path)
    resumed = len(trained)
    for kept in (experiment.cache_folder() / "bench").iterdir():
        rmtree(kept)
    again = run_task(task, work=tmp_path)
    assert resumed - 12 < len(trained) - resumed, "what was done was not done again"
    for each in (result, again):
        for cost in ("defense_cost", "victim_cost"):
            del each[cost]["seconds"]
    assert result == again
    assert [sum(row) for row in result["components"]] == [700, 700]
    assert [sum(row) for row in result["planted_by_component"]] == [result["planted"]] * 2
    assert [len(row) for row in result["components"]] == [3, 3]  # two rounds, and none
    assert result["voted_false_positives"] == result["false_positives"], "no self-training on GTSRB"


@dataclass(frozen=True)
class TwoGroups:
    """Removes the first three planted with a clean one, and keeps the next two."""

    planted: BoolArray
    name: ClassVar[str] = "two-groups"

    def judge(self, labels: LabelArray, _factory: LearnerFactory, **_options: Any) -> Decision:
        component = np.zeros(len(labels), dtype=np.int64)
        planted = np.flatnonzero(self.planted)
        component[[*planted[:3], np.flatnonzero(~self.planted)[0]]] = 1
        component[planted[3:5]] = 2
        groups = (Group(2, 4, True, 1, {"own": 0.123456}), Group(2, 2, False, 2, {"own": 1.0}))
        return Decision(component != 1, np.zeros(len(labels)), components=component[None, :], groups=groups)


@pytest.mark.usefixtures("_gtsrb")
def test_ispl_is_trained_by_its_own_recipe_and_the_victim_by_the_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reduced = {"rounds": 1, "restarts": 1, "first_epochs": 1, "epochs": 1, "weak_epochs": 1}
    setup = replace(TINY, ispl_recipe="resnet32", reduced=reduced)
    monkeypatch.setitem(scales.SCALES, "tiny", Scale("tiny", {"gtsrb": setup}, own_networks=False))
    recipes: list[Recipe] = []
    make = TorchLearner.__init__

    def noted(learner: TorchLearner, factory: Any, data: Any, *, seed: int) -> None:
        recipes.append(factory.options.recipe)
        make(learner, factory, data, seed=seed)

    monkeypatch.setattr(TorchLearner, "__init__", noted)
    run_task(BenchTask(SCENARIO, "tiny", "ispl-reduced", 0), work=tmp_path)
    assert len(recipes) > 2
    assert set(recipes[:-1]) == {PAPER_RECIPES["resnet32"]}
    assert recipes[-1] == COMPACT


@pytest.mark.usefixtures("_gtsrb")
def test_groups_are_recorded_with_what_was_planted_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(experiment.DEFENSES, "two-groups", lambda _, _setup, planted: TwoGroups(planted))
    result = result_of("two-groups", tmp_path)
    assert result["groups"] == [
        {"label": 2, "size": 4, "planted": 3, "removed": True, "called": 1, "evidence": {"own": 0.1235}},
        {"label": 2, "size": 2, "planted": 2, "removed": False, "called": 2, "evidence": {"own": 1.0}},
    ]
    assert result_of("nothing", tmp_path)["groups"] == []


@pytest.mark.usefixtures("_gtsrb")
def test_the_arena_holds_every_attacked_test_image() -> None:
    arena = set_up(by_name(SCENARIO), TINY, seed=0)
    assert len(arena.poisoned) == 700
    assert (arena.exam.labels[arena.exam.attacked] == 1).all()
    assert (arena.exam.goal == 2).all()
    changed = (arena.clean.features != arena.poisoned.features).any(axis=(1, 2, 3))
    assert (changed == arena.truth.planted).all()


@pytest.mark.parametrize(("defense", "is_on_clean"), [("oracle", False), ("oracle+clean", True)])
@pytest.mark.usefixtures("_gtsrb")
def test_a_second_victim_is_trained_in_the_attackers_way_on_what_was_kept(
    defense: str, is_on_clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int, Recipe]] = []

    def remembered(train: Samples, keep: BoolArray, exam: Exam, over: Any, **options: Any) -> Effect:
        recipe = over(train.features, train.labels).options.recipe
        seen.append((int(keep.sum()), options["epochs"], recipe))
        return Effect(0.1 * len(seen), 0.2 * len(seen), 0.3 * len(seen), Cost())

    second = replace(by_name(SCENARIO), second_recipe="sleeper-agent")
    monkeypatch.setattr(experiment, "by_name", lambda _name: second)
    monkeypatch.setattr(experiment, "train_and_examine", remembered)
    tiny = replace(TINY, epochs=10)
    monkeypatch.setitem(scales.SCALES, "tiny", Scale("tiny", {"gtsrb": tiny}, own_networks=False))
    result = result_of(defense, tmp_path)
    kept = 700 - result["planted"]
    assert (result["planted"] == 0) is is_on_clean
    assert seen == [(kept, 10, COMPACT), (kept, 8, SLEEPER_AGENT)]  # 100 and 80 epochs in the paper
    assert (result["accuracy"], result["tmr"], result["asr"]) == (0.1, 0.2, 0.3)
    attackers = (result["attacker_accuracy"], result["attacker_tmr"], result["attacker_asr"])
    assert attackers == pytest.approx((0.2, 0.4, 0.6))
    assert result["attacker_training"] == {
        "network": "compact", "epochs": 8, "augmentation": "crop", "recipe": SLEEPER_AGENT.as_dict(),
    }  # fmt: skip


@pytest.mark.usefixtures("_gtsrb")
def test_other_attacks_have_one_victim(tmp_path: Path) -> None:
    assert not [name for name in result_of("oracle", tmp_path) if name.startswith("attacker")]


SLEEPER = by_name("cifar10-sleeper-agent-7-5")
ADAPTIVE = by_name("cifar10-adaptive-0-2-eps5")


@pytest.mark.parametrize(
    ("scale", "network", "epochs", "augmentation"),
    [
        (PAPER, "resnet32", "40", None),
        (with_network("resnet32"), "resnet32", "40", None),
        (FULL, "compact", "15", None),
        (LAPTOP, "compact", "15", "none"),
    ],
)
def test_sleeper_agent_is_crafted_on_the_network_that_is_named(
    scale: Scale, network: str, epochs: str, augmentation: str | None
) -> None:
    """The paper: "targeting a ResNet32 as the victim architecture"."""
    options = poison_options(SLEEPER, scale.setup_for(SLEEPER), seed=7)
    assert options.settings == {
        "source": "7", "target": "5", "epsilon": "0.1", "network": network, "epochs": epochs,
    }  # fmt: skip
    assert options.augmentation == augmentation
    samples = Samples.numbered(np.zeros((20, 8, 8, 3), np.uint8), np.arange(20) % 10)
    attack: Any = build(options.attack, options.settings, samples, seed=7)
    assert (attack.reference.network, attack.reference.epochs) == (network, int(epochs))
    assert (attack.steps, attack.retrainings, attack.bound, attack.patch.size) == (250, 4, 16.0, 8)


@pytest.mark.parametrize(
    ("scale", "defense"), [(PAPER, "ispl-paper"), (FULL, "ispl-paper"), (LAPTOP, "ispl-reduced")]
)
@pytest.mark.parametrize("name", ["cifar10", "gtsrb"])
def test_the_adaptive_attacker_runs_the_ispl_of_the_defense(scale: Scale, defense: str, name: str) -> None:
    scenario = replace(ADAPTIVE, dataset=name)
    setup = scale.setup_for(scenario)
    options = poison_options(scenario, setup, seed=0)
    assert options.settings["settings"] == f"paper-{name}"
    assert options.settings["learner"] == setup.network
    assert options.augmentation == setup.augmentation
    # and by the recipe that the bench gives to the models of ISPL
    assert options.ispl_recipe == setup.ispl_recipe == (NETWORKS[name] if scale is FULL else None)
    labels = np.repeat(np.arange(10), 600)
    attacked_one: Any = defense_for(defense, scenario, setup, np.zeros(3, dtype=np.bool_))
    theirs = attacked_one.settings(labels, object())
    own = _attackers_ispl(labels, options.settings["settings"], options.ispl_changes, networks=True)
    unlike = {key for key, value in theirs.as_dict().items() if own.as_dict()[key] != value}
    assert unlike <= {"restarts", "weak_epochs", "weak_min_steps", "self_training"}
    assert own.restarts == 1  # one partition


@pytest.mark.parametrize("scale", ["paper", "full", "laptop"])
@pytest.mark.parametrize(
    ("name", "option", "given"),
    [
        ("cifar10-clean-label-l2-4-eps10", "arrays", "theirs"),
        ("gtsrb-watermark-1-2-eps10", "png", "pictures/letter_A.png"),
    ],
)
def test_official_images_reach_the_attack_at_every_scale(
    scale: str, name: str, option: str, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(_source: str, options: PoisonOptions, *, kept: Path) -> Attacked:
        assert options.settings.get(option) == given
        raise RuntimeError("it was asked for")

    monkeypatch.setattr(experiment, "attacked", asked)
    with pytest.raises(RuntimeError, match="it was asked for"):
        run_task(BenchTask(name, scale, "nothing", 0, arrays="theirs", watermarks="pictures"), work=tmp_path)


def test_only_attackers_who_know_the_victim_are_told_of_it() -> None:
    for scenario in catalog():
        setup = LAPTOP.setup_for(scenario)
        options = poison_options(scenario, setup, seed=0)
        knows = scenario.attack in ("sleeper-agent", "adaptive")
        assert (options.augmentation == "none") is knows
        assert set(options.settings) == {
            *scenario.options_for(0),
            *(
                {"sleeper-agent": ("network", "epochs"), "adaptive": ("learner", "settings")}.get(
                    scenario.attack, ()
                )
            ),
        }


@pytest.mark.parametrize("name", [*experiment.DEFENSES, *experiment.COMPARED])
def test_every_defense_can_be_made(name: str) -> None:
    scenario = by_name(SCENARIO)
    planted = np.array([True, False, False])
    defense = defense_for(name, scenario, LAPTOP.setup_for(scenario), planted)
    assert hasattr(defense, "judge")


def test_ispl_has_the_papers_settings_unless_it_is_reduced() -> None:
    planted = np.zeros(3, dtype=np.bool_)
    for scenario in catalog():
        preset = "paper-gtsrb" if scenario.dataset == "gtsrb" else "paper-cifar10"
        papers = Incompatibility("ispl", preset, changes=scenario.defense)
        for scale in (PAPER, FULL, LAPTOP):
            assert defense_for("ispl-paper", scenario, scale.setup_for(scenario), planted) == papers
        assert defense_for("ispl-reduced", scenario, LAPTOP.setup_for(scenario), planted) != papers
        with pytest.raises(InputError, match="no reduced settings of ISPL"):
            defense_for("ispl-reduced", scenario, PAPER.setup_for(scenario), planted)


def test_baselines_are_told_epsilon_and_trained_as_long_as_the_victim() -> None:
    scenario, planted = by_name(SCENARIO), np.zeros(3, dtype=np.bool_)
    setup = replace(LAPTOP.setup_for(scenario), epochs=10)
    spectral: Any = defense_for("spectral-signatures", scenario, setup, planted)
    assert (spectral.share, spectral.epochs) == (0.3, 10)
    trimmed: Any = defense_for("trimmed-loss", scenario, setup, planted)
    assert (trimmed.alpha, trimmed.first_epochs, trimmed.later_epochs) == (0.92, 8, 4)


@pytest.mark.parametrize("scale", [PAPER, LAPTOP])
@pytest.mark.parametrize("network", ["preactresnet18", "resnet32"])
def test_with_200_epochs_only_the_final_model_has_more(scale: Scale, network: str) -> None:
    """The captions: "when training for the final model for 200 epochs"."""
    usual = by_name("cifar10-dirty-label-0-2-eps10")
    longer = by_name(f"{usual.name}-{network}-200")
    setups = {scenario: scale.setup_for(scenario) for scenario in (usual, longer)}
    assert setups[longer].epochs == 2 * setups[usual].epochs
    for name in ("trimmed-loss", "activation-clustering", "confident-learning"):
        one, other = (defense_for(name, *each, np.zeros(3, dtype=np.bool_)) for each in setups.items())
        assert one == other
    spectral: list[Any] = [
        defense_for("spectral-signatures", *each, np.zeros(3, dtype=np.bool_)) for each in setups.items()
    ]
    assert spectral[0].epochs == spectral[1].epochs == setups[usual].epochs


def test_the_papers_baselines_with_200_epochs() -> None:
    planted = np.zeros(3, dtype=np.bool_)
    shares: dict[int, list[float]] = {100: [], 200: []}
    for suffix in ("", "-resnet32-200"):
        for epsilon in (5, 10, 20):
            scenario = by_name(f"cifar10-dirty-label-0-2-eps{epsilon}{suffix}")
            setup = PAPER.setup_for(scenario)
            trimmed: Any = defense_for("trimmed-loss", scenario, setup, planted)
            assert (trimmed.first_epochs, trimmed.later_epochs) == (80, 40)
            spectral: Any = defense_for("spectral-signatures", scenario, setup, planted)
            assert (spectral.epochs, spectral.centred) == (100, False)
            shares[setup.epochs].append(spectral.share)
    assert shares == {100: [0.2, 0.2, 0.3], 200: [0.15, 0.15, 0.3]}


def recipes_of(scenario: str, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The recipes that a task at the paper's scale asks for: the defense's, then the victim's."""
    samples = Samples.numbered(np.zeros((4, 32, 32, 3), np.uint8), np.array([0, 0, 1, 1]))
    nobody = np.zeros(4, dtype=np.bool_)
    exam = Exam(samples.features, samples.labels, np.array([0]), samples.features[:1], np.array([1]))
    arena = Arena(samples, samples, Truth(nobody, nobody, samples.labels), exam, "crop")
    asked: list[str | None] = []

    def choose(choice: LearnerChoice, *_given: Any, **_options: Any) -> Any:
        asked.append(choice.recipe)
        return Mock()

    def train(train: Samples, _keep: Any, _exam: Any, over: Any, *, epochs: int, **_options: Any) -> Effect:
        over(train.features, train.labels)
        assert epochs == by_name(scenario).epochs
        return Effect(0.9, 0.0, 0.0, Cost())

    monkeypatch.setattr(experiment, "set_up", lambda *_given, **_options: arena)
    monkeypatch.setattr(experiment, "choose", choose)
    monkeypatch.setattr(experiment, "train_and_examine", train)
    run_task(BenchTask(scenario, "paper", "nothing", 0), work=Path())
    return asked


def test_the_schedule_of_200_epochs_is_the_victims_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert recipes_of("cifar10-dirty-label-0-2-eps5-resnet32-200", monkeypatch) == [None, "paper-200"]
    assert recipes_of("cifar10-dirty-label-0-2-eps5", monkeypatch) == [None, None]


@pytest.mark.parametrize(("name", "removed"), [("random", 15), ("random-50", 100), ("random-1", 2)])
def test_random_filters_of_several_sizes(name: str, removed: int) -> None:
    scenario = by_name(SCENARIO)
    defense = defense_for(name, scenario, LAPTOP.setup_for(scenario), np.zeros(200, dtype=np.bool_))
    assert defense == RandomFilter(removed)


@pytest.mark.parametrize("name", ["isplx", "random-0", "random-100", "random-05", "random-", "random-5.5"])
def test_an_unknown_defense(name: str) -> None:
    scenario = by_name(SCENARIO)
    with pytest.raises(InputError, match=rf"no defense is called '{name}'; .* random-1 to random-99"):
        defense_for(name, scenario, LAPTOP.setup_for(scenario), np.zeros(3, dtype=np.bool_))


def test_what_is_removed_at_random_is_not_trained_on() -> None:
    nothing, little, half = (
        estimate_seconds(BenchTask(SCENARIO, "laptop", by, 0))
        for by in ("nothing", "random", "random-50+clean")
    )
    assert half < 0.65 * little
    assert little < nothing


def test_every_defense_has_an_estimate() -> None:
    for name in (*experiment.DEFENSES, *experiment.COMPARED):
        assert estimate_seconds(BenchTask(SCENARIO, "paper", name, 0)) > 0


@pytest.mark.parametrize("folder", ["full", "full-variants/nesterov/full", "full-variants/drawings/full"])
def test_the_passes_of_ispl_follow_from_its_settings(folder: str) -> None:
    for path in (RECORDED.parent / folder).glob("*/ispl-paper-seed?.json"):
        run = json.loads(path.read_text())["result"]
        preset = "paper-gtsrb" if run["scenario"].startswith("gtsrb") else "paper-cifar10"
        settings: Any = settings_for(np.zeros(0, dtype=np.int64), preset=preset)
        assert ispl_passes(settings) == pytest.approx(
            epoch_equivalents(run["defense_cost"], run["n"]), rel=0.05
        )


def test_a_cell_of_the_ablation_is_estimated_by_its_own_settings() -> None:
    base = "gtsrb-watermark-1-2-eps10"
    whole, dear, cheap = (
        estimate_seconds(BenchTask(name, "laptop", "ispl-paper", 0))
        for name in (base, f"{base}-alpha-1-beta-1-16", f"{base}-alpha-1-16-beta-1")
    )
    assert cheap < 0.35 * dear < dear < whole


def test_estimates_are_of_the_work_that_was_recorded() -> None:
    """The work and not the seconds: those tell as much about what else the machine did."""
    if not RECORDED.is_dir():
        pytest.skip(f"{RECORDED} is not there")
    work, expected = defaultdict[str, float](float), defaultdict[str, float](float)
    for path in RECORDED.glob("*/*-seed?.json"):
        record = json.loads(path.read_text())
        task, costs = (
            BenchTask(**record["task"]),
            [record["result"][f"{by}_cost"] for by in ("defense", "victim")],
        )
        if task.defense.removesuffix(ON_CLEAN) in REPLACED:
            continue
        work[task.defense] += sum(epoch_equivalents(cost, 1) for cost in costs)
        expected[task.defense] += estimate_seconds(task) * experiment.RATES["compact"]
    plain = {name for name in work if not name.endswith(ON_CLEAN)}
    assert {name: expected[name] / work[name] for name in plain} == dict.fromkeys(
        plain, pytest.approx(1.0, rel=0.2)
    )


def test_groups_are_estimated_by_their_passes() -> None:
    """As many as a recorded run of all of CIFAR-10 had (16.7), and those of the victim."""
    task = BenchTask("cifar10-development-1", "full", "groups", 0)
    passes = estimate_seconds(task) * experiment.RATES["compact"] / 50_000
    assert passes == pytest.approx(16.7 + 1.1 * 20, abs=0.1)
