"""The job behind ``unpoison poison``: load a source, hold out a test set, attack the rest, write it all."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison import __version__
from unpoison.attacks.base import NOT_ATTACKED, Attack, Samples, Truth
from unpoison.attacks.catalog import ATTACKS, Extras, build, check_options, find, resolve
from unpoison.core.checkpoint import FolderCheckpoints
from unpoison.core.config import Settings
from unpoison.data.container import Dataset
from unpoison.data.load import HUB_PREFIX, LoadOptions, load
from unpoison.data.named.catalog import DIGITS, NAMES
from unpoison.errors import InputError
from unpoison.evaluation.forms import Form, HeldOut, form_of
from unpoison.evaluation.poison_files import (
    RECORD,
    TRUTH,
    check_place,
    check_preview,
    plain,
    save_preview,
    staging_for,
    write_truth,
)
from unpoison.evaluation.subsets import FEWEST, counts_to_hold_out, shares_of_limit, stratified
from unpoison.events import Listener, Progress, ignore
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray

USUAL_TEST_SHARE = 0.2
INPUT = ("label", "text", "id_column", "split", "image", "image_size")
"""Choices at reading that change what is read."""


@dataclass(frozen=True)
class PoisonOptions:
    """How to poison a source."""

    attack: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the attack takes, by the names of the command line without dashes (``unpoison attacks``)."""
    seed: int = 0
    limit: int | None = None
    """Training samples to take; None takes all."""
    test_share: float | None = None
    """Share of each class to hold out where the source has no test split; None: a fifth. 0: no test set."""
    preview: Path | None = None
    augmentation: str | None = None
    """How networks of the attacker's vary images in training; None: as suits the dataset."""
    ispl_changes: Mapping[str, Any] = field(default_factory=dict)
    """``adaptive``: settings in which the defense that is attacked differs from the preset."""
    ispl_recipe: str | None = None
    """``adaptive``: how the defense that is attacked trains its network, if not as usual."""
    load: LoadOptions = field(default_factory=LoadOptions)

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InputError(f"limit is the number of training samples, at least 1. Got {self.limit}")
        if self.test_share is not None and not 0.0 <= self.test_share < 1.0:
            raise InputError(
                f"the test share is the part of each class to hold out, in [0, 1). Got {self.test_share}"
            )


@dataclass(frozen=True)
class Attacked:
    """A training set before and after an attack, and the test set, in memory."""

    attack: Attack
    clean: Samples
    poisoned: Samples
    truth: Truth
    test: Samples | None
    augmentation: str
    """How images of this dataset are varied in training."""


@dataclass(frozen=True)
class _Job:
    """A source that was read: what is attacked, and what is held out."""

    dataset: Dataset
    form: Form
    rows: IndexArray
    """The samples to attack, as places in the source."""
    train: Samples
    test: HeldOut | None

    @property
    def is_part(self) -> bool:
        """Whether less than the whole source is attacked."""
        return len(self.rows) < len(self.form.samples)


@dataclass(frozen=True)
class _Done:
    """An attack, and what it made of the training samples."""

    attack: Attack
    settings: Mapping[str, Any]
    poisoned: Samples
    truth: Truth


def poison(
    source: str,
    out: Path,
    *,
    options: PoisonOptions,
    listener: Listener = ignore,
    command: str | None = None,
) -> dict[str, Any]:
    """Poison ``source`` into the new or empty folder ``out``; return what its ``attack.json`` says.

    ``out`` appears at the end, with everything in it, or not at all.
    """
    check_options(options.attack, options.settings)
    check_place(source, out)
    if options.preview is not None:
        check_preview(options.preview, out)
    listener(Progress("reading the data", 0, 1))
    job = _read(source, options)
    listener(Progress("reading the data", 1, 1))
    done = _attack(job, options, listener)
    picture = None if options.preview is None else _picture(job, done)
    listener(Progress("writing", 0, 1))
    with staging_for(out) as staging:
        written = job.form.write_train(staging, job.rows, done.poisoned)
        files = [job.form.train_name, *_write_test(staging, job, done.attack)]
        ids = [job.form.ids[i] for i in job.rows.tolist()]
        write_truth(staging / TRUTH, written, ids, done.poisoned, done.truth)
        record = _record(source, job, done, options, command=command)
        record["files"] = [*files, TRUTH, RECORD]
        (staging / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="ascii")
    if options.preview is not None:
        save_preview(picture, options.preview)
    listener(Progress("writing", 1, 1))
    return record


def attacked(
    source: str, options: PoisonOptions, *, listener: Listener = ignore, kept: Path | None = None
) -> Attacked:
    """What :func:`poison` does, without writing the results: for experiments.

    ``kept`` is a folder where attacks that take minutes leave what they made, and find it the next time.
    """
    check_options(options.attack, options.settings)
    job = _read(source, options)
    takes_long = find(options.attack).needs_torch or find(options.attack).needs_components
    if kept is None or not takes_long:
        done = _attack(job, options, listener)
    else:
        done = _attack_once(job, options, listener, kept)
    test = None if job.test is None else job.test.samples
    return Attacked(done.attack, job.train, done.poisoned, done.truth, test, job.dataset.augmentation)


def _read(source: str, options: PoisonOptions) -> _Job:
    dataset = load(source, options=options.load)
    named = source in NAMES
    form = form_of(dataset, options.load, as_arrays=named or source.startswith(HUB_PREFIX))
    _check_kind(dataset.name, form, options)
    samples, seeds = form.samples, Seeds(options.seed)
    if named and source != DIGITS:
        rows = np.arange(len(samples))
        test: HeldOut | None = _test_split(source, options)
    else:
        rows, test = _held_out(form, samples, options, seeds)
    if options.limit is not None:
        counts = shares_of_limit(samples.labels[rows], options.limit, samples.n_classes)
        rows = rows[stratified(samples.labels[rows], counts, seeds.within("limit"))]
    return _Job(dataset, form, rows, _part(samples, rows), test)


def _check_kind(name: str, form: Form, options: PoisonOptions) -> None:
    kinds = find(options.attack).kinds
    if form.kind not in kinds:
        suited = ", ".join(entry.name for entry in ATTACKS.values() if form.kind in entry.kinds)
        raise InputError(
            f"the attack {options.attack!r} is for {' and '.join(kinds)}, and {name} is {form.kind}; choose "
            f"one of {suited}"
        )
    if options.preview is not None and form.kind != "image":
        raise InputError(f"previews are for images, and {name} is {form.kind}; leave --preview out")


def _part(samples: Samples, rows: IndexArray) -> Samples:
    return samples.changed(samples.features[rows], samples.labels[rows])


def _test_split(source: str, options: PoisonOptions) -> HeldOut | None:
    from unpoison.data.named.load import load_split

    if options.test_share == 0.0:
        return None
    if options.test_share is not None:
        raise InputError(
            f"{source} has a test split of its own; leave --test-share out, or give 0 for no test set"
        )
    dataset = load_split(source, "test", options=options.load)
    samples = Samples(np.asarray(dataset.features), dataset.labels, dataset.class_names)
    return HeldOut(samples, dataset.ids)


def _held_out(
    form: Form, samples: Samples, options: PoisonOptions, seeds: Seeds
) -> tuple[IndexArray, HeldOut | None]:
    """The rows to train on, and the test set: a share of each class, but never its last two samples."""
    share = USUAL_TEST_SHARE if options.test_share is None else options.test_share
    counts = counts_to_hold_out(samples.labels, share, samples.n_classes)
    held = stratified(samples.labels, counts, seeds.within("test"))
    if not len(held):
        return np.arange(len(samples)), None
    rows = np.setdiff1d(np.arange(len(samples)), held)
    return rows, HeldOut(_part(samples, held), tuple(form.ids[i] for i in held.tolist()), held)


def _attack(job: _Job, options: PoisonOptions, listener: Listener) -> _Done:
    attack, settings = _made(job, options)
    if find(options.attack).needs_components:  # only now: wrong options should not take minutes to tell
        components = _components(job, settings, options, listener)
        attack, _ = _made(job, options, components=components)
    listener(Progress("poisoning", 0, 1))
    poisoned, truth = attack.apply(job.train, seed=options.seed)
    _check_left(poisoned)
    listener(Progress("poisoning", 1, 1))
    return _Done(attack, settings, poisoned, truth)


def _made(
    job: _Job, options: PoisonOptions, *, components: NDArray[np.int64] | None = None
) -> tuple[Attack, Mapping[str, Any]]:
    """The attack and its settings, for the samples that were read."""
    columns = job.form.columns
    settings = resolve(options.attack, options.settings, job.train, columns=columns)
    known = np.zeros(len(job.train), dtype=np.int64) if components is None else components
    part = (tuple(job.rows.tolist()), len(job.form.samples)) if job.is_part else None
    extras = Extras(columns, known, options.augmentation or job.dataset.augmentation, part)
    return build(options.attack, options.settings, job.train, seed=options.seed, extras=extras), settings


def _attack_once(job: _Job, options: PoisonOptions, listener: Listener, kept: Path) -> _Done:
    """The attack as it was made before with the same data, options and versions; else now."""
    identity = _identity(job, options)
    memory = FolderCheckpoints.named_after(identity, parent=kept)
    found = memory.load("attack")
    if found is None:
        done = _attack(job, options, listener)
        changed = np.flatnonzero(done.truth.planted | done.truth.covers)
        memory.save(
            "attack",
            {
                "changed": changed,
                "features": done.poisoned.features[changed],
                "labels": done.poisoned.labels,
                "planted": done.truth.planted,
                "covers": done.truth.covers,
                "original_labels": done.truth.original_labels,
            },
        )
        return done
    features = job.train.features.copy()
    features[found["changed"]] = found["features"]
    attack, settings = _made(job, options)
    planted, covers = (found[name].astype(np.bool_) for name in ("planted", "covers"))
    truth = Truth(planted, covers, found["original_labels"].astype(np.int64))
    return _Done(attack, settings, job.train.changed(features, found["labels"].astype(np.int64)), truth)


def _identity(job: _Job, options: PoisonOptions) -> dict[str, object]:
    # the core is for ISPL's components only: another rule of a defense is no other attack
    made_with = ("attacks", "learners", *(("core",) if find(options.attack).needs_components else ()))
    return {
        "data": job.dataset.fingerprint,
        "attack": options.attack,
        "settings": plain(options.settings),
        "augmentation": options.augmentation,
        "ispl_changes": plain(options.ispl_changes),
        "ispl_recipe": options.ispl_recipe,
        "seed": options.seed,
        "limit": options.limit,
        "versions": {"unpoison": __version__, "numpy": version("numpy"), "torch": version("torch")},
        "code": hash_of_code(*made_with),
    }


@cache
def hash_of_code(*packages: str) -> str:
    """Of what something is made with: between releases the version does not tell changes."""
    digest = hashlib.sha256()
    for package in packages:
        for file in sorted(Path(str(resources.files("unpoison") / package)).glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _components(
    job: _Job, settings: Mapping[str, Any], options: PoisonOptions, listener: Listener
) -> NDArray[np.int64]:
    """The partition of the clean samples that one run of the attacked defense's ISPL makes."""
    from unpoison.core.pipeline import sanitize
    from unpoison.learners.choose import LearnerChoice, choose
    from unpoison.learners.recipes import TrainingOptions

    labels = job.train.labels
    training = TrainingOptions(augmentation=options.augmentation or job.dataset.augmentation)
    choice = LearnerChoice(settings["learner"], options.ispl_recipe, training)
    chosen = choose(choice, job.train.features, labels, n_classes=job.train.n_classes)
    ispl = _attackers_ispl(labels, settings["settings"], options.ispl_changes, networks=chosen.is_network)
    # in this process: a round waits for the one before, so that more workers have nothing to do
    result = sanitize(labels, chosen.factory, ispl, seed=options.seed, listener=listener)
    components: NDArray[np.int64] = result.components[0]
    return components


def _attackers_ispl(
    labels: LabelArray, preset: str, changes: Mapping[str, Any], *, networks: bool
) -> Settings:
    """The defense's settings of ISPL, for one partition alone.

    Voters and self-training come after it and cannot change it, so they do as little as they can.
    """
    from unpoison.core.presets import settings_for

    one = {"restarts": 1, "weak_epochs": 1, "weak_min_steps": 0, "self_training": False}
    return settings_for(labels, preset=preset, networks=networks, **{**changes, **one})


def _check_left(poisoned: Samples) -> None:
    sizes = np.bincount(poisoned.labels, minlength=poisoned.n_classes)
    for c in np.flatnonzero(sizes < FEWEST).tolist():
        raise InputError(
            f"the attack leaves {sizes[c]} samples in class {poisoned.class_names[c]!r}, and every class "
            f"needs {FEWEST}; lower --epsilon, or take more data"
        )


def _write_test(staging: Path, job: _Job, attack: Attack) -> tuple[str, ...]:
    if job.test is None:
        return ()
    samples = job.test.samples
    goal = attack.goal(samples.labels)
    triggered = attack.trigger(samples.features) if (goal >= 0).any() else samples.features
    return job.form.write_test(staging, job.test, triggered, goal)


def _picture(job: _Job, done: _Done) -> Any:
    from unpoison.evaluation.preview import MOST_PAIRS, draw, train_pairs, triggered_pairs

    of_test = [] if job.test is None else triggered_pairs(job.test.samples, done.attack)
    of_train = train_pairs(job.train, done.poisoned, done.truth, most=MOST_PAIRS - len(of_test))
    return draw([*of_train, *of_test])


def _record(
    source: str, job: _Job, done: _Done, options: PoisonOptions, *, command: str | None
) -> dict[str, Any]:
    names, truth = done.poisoned.class_names, done.truth
    planted = np.flatnonzero(truth.planted)
    pairs = zip(truth.original_labels[planted].tolist(), done.poisoned.labels[planted].tolist(), strict=True)
    goal = np.empty(0) if job.test is None else done.attack.goal(job.test.samples.labels)
    return {
        "attack": options.attack,
        "options": plain(done.settings),
        "made": plain(done.attack),
        "seed": options.seed,
        "source": source,
        "input": {name: getattr(options.load, name) for name in INPUT},
        "limit": options.limit,
        "test_share": options.test_share,
        "kind": job.form.kind,
        "class_names": list(names),
        "counts": {
            "train": len(job.train),
            "planted": len(planted),
            "covers": int(truth.covers.sum()),
            "test": len(goal),
            "attacked_test": int((goal != NOT_ATTACKED).sum()),
        },
        "planted_by_class": dict(Counter(f"{names[old]} -> {names[new]}" for old, new in pairs)),
        "data": job.dataset.fingerprint,
        "version": __version__,
        "command": command,
        "clean_options": list(job.form.clean_options),
    }
