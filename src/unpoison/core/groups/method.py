"""The method of groups: look, propose, withhold, judge, decide."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.boosting import count_votes, suspicion_from_losses
from unpoison.core.config import GroupSettings
from unpoison.core.groups.canaries import Canaries, with_canaries
from unpoison.core.groups.decide import Evidence, Thresholds, Verdict, decide
from unpoison.core.groups.propose import NO_SIDE, ProposeTask, sets_of, standardized
from unpoison.core.groups.separation import FEWEST, NOT_MEASURED, Separation, alike, separation
from unpoison.core.learner import LearnerFactory, check_finite, look_of
from unpoison.core.result import Group, Sanitization, VoteRecord
from unpoison.core.sampling import class_members, dealt
from unpoison.core.tasks import Task, Workshop, cost_array
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, IndexArray, LabelArray

PARTS = 8
"""Tasks that classes are dealt into: more than workers, and the same whatever their number."""
UNSURE = 0.1
"""The share of what a judge knows of a class that it is less sure of than of what counts as surely called."""
LOOKS = 3
"""Most looks at a class: without what was planted, more of it may show."""


@dataclass(frozen=True)
class ModelTask:
    """Train a model on some samples, and keep what it says and sees of those that it is asked about."""

    factory: LearnerFactory
    indices: IndexArray
    asked: IndexArray
    epochs: int
    min_steps: int
    seed: int

    def __call__(self) -> Arrays:
        """One row each of losses, predictions, confidences and the view, in the order of ``asked``."""
        learner = self.factory(self.seed)
        look = look_of(learner)  # refused before it is trained
        learner.fit(self.indices, epochs=self.epochs, min_steps=self.min_steps, final=True)
        said, view = look(self.asked)
        check_finite(view, "What the trained model sees is")
        return {
            "losses": said.losses.astype(np.float32),
            "predictions": said.predictions.astype(np.int32),
            "confidences": said.confidences.astype(np.float32),
            "view": view.astype(np.float32),
            "cost": cost_array(learner.cost),
        }


@dataclass(frozen=True)
class _Panel:
    """Judges, and what they say and see of what they did not train on; the rest of each array is nobody's."""

    unseen: BoolArray
    """Judges by samples: who had not trained on what."""
    predictions: NDArray[np.int32]
    losses: NDArray[np.float32]
    confidences: NDArray[np.float32]
    views: list[FloatArray]
    """Of each judge, a row a sample; 0 for what it trained on."""

    @classmethod
    def of(cls, unseen: BoolArray, said: list[Arrays]) -> _Panel:
        """From what each judge says of the samples that it did not train on, in their order."""
        views = []
        for asked, each in zip(unseen, said, strict=True):
            view = np.zeros((unseen.shape[1], each["view"].shape[1]))
            view[asked] = standardized(each["view"])
            views.append(view)
        predictions = np.zeros(unseen.shape, dtype=np.int32)
        losses, confidences = (np.zeros(unseen.shape, dtype=np.float32) for _ in range(2))
        for j, (asked, each) in enumerate(zip(unseen, said, strict=True)):
            predictions[j, asked] = each["predictions"]
            losses[j, asked] = each["losses"]
            confidences[j, asked] = each["confidences"]
        return cls(unseen, predictions, losses, confidences, views)


@dataclass(frozen=True)
class _Candidate:
    """A group that stands apart for models that met it."""

    members: IndexArray
    met: Separation
    side: int
    """Which side it is of a class that falls into two; ``NO_SIDE`` if it does not."""
    near: IndexArray
    """What is on the way to it."""
    like: IndexArray
    """What is like it in other classes."""

    def with_followers(self, disputed: BoolArray) -> _Candidate:
        """Of what is near it, what is disputed goes along."""
        return replace(self, members=np.concatenate([self.members, self.near[disputed[self.near]]]))


@dataclass(frozen=True)
class _Hearing:
    """Judges, and what is asked of them."""

    judges: _Panel
    heard: BoolArray
    """Judges by samples: who judges what."""
    usual: list[FloatArray]
    """For each judge: the confidence from which on it is sure of a class."""


@dataclass(frozen=True)
class _Judged:
    """The groups of a look, with what was measured and decided; and who judged which sample."""

    candidates: list[_Candidate]
    evidence: list[Evidence]
    verdicts: list[Verdict]

    def planted(self) -> list[_Candidate]:
        """Those that go."""
        pairs = zip(self.candidates, self.verdicts, strict=True)
        return [candidate for candidate, verdict in pairs if verdict == "planted"]

    def and_more(self, other: _Judged) -> _Judged:
        """These and those of another look."""
        return _Judged(
            self.candidates + other.candidates,
            self.evidence + other.evidence,
            self.verdicts + other.verdicts,
        )


def clean_by_groups(
    labels: LabelArray, factory: LearnerFactory, settings: GroupSettings, *, seeds: Seeds, workshop: Workshop
) -> Sanitization:
    """Run the whole method on the samples behind ``labels``."""
    canaries = Canaries.none(labels, factory)
    if settings.canaries:
        canaries = with_canaries(labels, factory, seeds)
    run = _Run(canaries.labels, canaries.factory, settings, seeds, workshop)
    seen = run.look()
    found = run.propose(seen, look=0)
    heard = _withheld(found, 2 * settings.pairs, len(run.labels))
    judges = run.judges(heard)
    judged = run.judge(found, judges, heard)
    last = judged.planted()
    for look in range(1, LOOKS):
        if not last:
            break
        more = run.propose(seen, look=look, known=judged)
        for each in more:  # nobody withheld it: each judge judges the half that it did not meet
            heard[:, each.members] = judges.unseen[:, each.members]
        again = run.judge(more, judges, heard, already=len(judged.candidates))
        judged, last = judged.and_more(again), again.planted()
    return _result(judges, heard, judged, canaries, run)


@dataclass(frozen=True)
class _Run:
    """What every step of a run is given."""

    labels: LabelArray
    factory: LearnerFactory
    settings: GroupSettings
    seeds: Seeds
    workshop: Workshop

    def look(self) -> Arrays:
        """A model on everything, as a victim would train it, and what it sees."""
        everyone = np.ones(len(self.labels), dtype=np.bool_)
        self.workshop.begin("a model on everything", 1)
        return self._trained("model", [everyone], [everyone], self.settings.epochs)[0]

    def judges(self, withheld: BoolArray) -> _Panel:
        """Models on a half each of what is not withheld from them; a pair shares the halves."""
        pairs = range(self.settings.pairs)
        half = np.stack([dealt(self.labels, 2, rng=self.seeds.stream("halves", pair)) for pair in pairs])
        inside = ~withheld & np.concatenate([half != 0, half != 1])
        self.workshop.begin("judges", len(inside))
        return _Panel.of(~inside, self._trained("judge", inside, ~inside, self.settings.judge_epochs))

    def _trained(
        self, kind: str, inside: Iterable[BoolArray], asked: Iterable[BoolArray], epochs: int
    ) -> list[Arrays]:
        min_steps = self.settings.min_steps
        tasks: dict[str, Task] = {
            _name(kind, m, mine, (epochs, min_steps)): ModelTask(
                self.factory, np.flatnonzero(mine), np.flatnonzero(others), epochs,
                min_steps=min_steps, seed=self.seeds.integer(kind, m),
            )
            for m, (mine, others) in enumerate(zip(inside, asked, strict=True))
        }  # fmt: skip
        return list(self.workshop.run(tasks).values())

    def propose(self, seen: Arrays, *, look: int, known: _Judged | None = None) -> list[_Candidate]:
        """The groups of all classes that stand apart; with ``known``, what they hid in their classes."""
        among = np.ones(len(self.labels), dtype=np.bool_)
        judged = np.zeros(len(self.labels), dtype=np.bool_)
        classes = np.unique(self.labels)
        if known is not None:
            gone = known.planted()
            among[np.concatenate([each.members for each in gone])] = False
            judged[np.concatenate([each.members for each in known.candidates])] = True
            classes = np.unique(self.labels[~among])
        parts = [classes[part::PARTS] for part in range(min(PARTS, len(classes)))]
        seeds = self.seeds.within("look", look)
        self.workshop.begin("groups that stand apart", len(parts))
        tasks: dict[str, Task] = {
            f"groups-{look}-{number}": ProposeTask(
                seen["view"], self.labels, tuple(part.tolist()), self.settings.met, seeds, among
            )
            for number, part in enumerate(parts)
        }
        found = [each for done in self.workshop.run(tasks).values() for each in _candidates(done)]
        new = [(each, each.members[~judged[each.members]]) for each in found]
        return [
            replace(each, members=members) for each, members in new if 2 * len(members) > len(each.members)
        ]

    def judge(
        self, candidates: list[_Candidate], judges: _Panel, heard: BoolArray, *, already: int = 0
    ) -> _Judged:
        """Measure and decide about each group, by the judges that did not meet it."""
        hearing = _Hearing(
            judges,
            heard,
            [self._usual_confidence(judges, heard, j) for j in range(len(heard))],
        )
        evidence = [
            self._evidence(candidate, hearing, number)
            for number, candidate in enumerate(candidates, start=already + 1)
        ]
        thresholds = Thresholds(self.settings.met, self.settings.kept, self.settings.right_labels)
        verdicts = _never_both(candidates, evidence, [decide(each, thresholds) for each in evidence])
        disputed = self._disputed(judges) & ~heard.any(axis=0)
        whole = [
            candidate.with_followers(disputed) if verdict == "planted" else candidate
            for candidate, verdict in zip(candidates, verdicts, strict=True)
        ]
        return _Judged(whole, evidence, verdicts)

    def _disputed(self, judges: _Panel) -> BoolArray:
        """What some judge that did not train on it calls another class than its label."""
        return np.asarray((judges.unseen & (judges.predictions != self.labels)).any(axis=0))

    def _usual_confidence(self, judges: _Panel, heard: BoolArray, j: int) -> FloatArray:
        """By class, the confidence that all but a tenth reach of what a judge rightly calls so, untrained."""
        right = judges.unseen[j] & ~heard.any(axis=0) & (judges.predictions[j] == self.labels)
        usual = np.full(int(self.labels.max()) + 1, np.inf)
        for members in class_members(self.labels[right]):
            confidences = judges.confidences[j, right][members]
            usual[self.labels[right][members[0]]] = np.quantile(confidences, UNSURE)
        return usual

    def _evidence(self, candidate: _Candidate, hearing: _Hearing, number: int) -> Evidence:
        label = int(self.labels[candidate.members[0]])
        apart: list[Separation] = []
        said: list[IndexArray] = []
        sure: list[BoolArray] = []
        judges, heard = hearing.judges, hearing.heard
        for j, (view, usual) in enumerate(zip(judges.views, hearing.usual, strict=True)):
            members = candidate.members[heard[j, candidate.members]]
            met_of_class = np.count_nonzero(~judges.unseen[j] & (self.labels == label))
            if len(members) == 0:
                continue
            rng = self.seeds.stream("unmet", number, j)
            called = judges.predictions[j].astype(np.int64)
            others = judges.unseen[j] & (~heard[j] if candidate.side else ~heard.any(axis=0))
            like = alike(called, members, others, 3 * len(members) + 300, rng=rng)
            if met_of_class >= FEWEST:  # who hardly knows a class cannot tell what is not of it
                apart.append(separation(view[members], view[like], rng=rng))
            said.append(called[members])
            is_sure = judges.confidences[j, members] >= usual[called[members]]
            sure.append(is_sure & (called[members] != label))
        of_members = np.concatenate(said)
        return Evidence(
            label=label,
            size=len(candidate.members),
            met=candidate.met,
            unmet=Separation.mean([each for each in apart if each.error < NOT_MEASURED]),
            agreement=float((of_members == label).mean()),
            elsewhere=float(np.concatenate(sure).mean()),
            called=int(np.bincount(of_members).argmax()),
        )


def _name(kind: str, number: int, inside: BoolArray, passes: tuple[int, ...]) -> str:
    """Of a task; it tells whom the model trains on and for how long, so that no other is taken for it."""
    digest = hashlib.sha256(np.packbits(inside).tobytes() + repr(passes).encode())
    return f"{kind}-{number:03d}-{digest.hexdigest()[:8]}"


def _candidates(found: Arrays) -> list[_Candidate]:
    """The groups that a task proposes."""
    numbers = zip(found["z"].tolist(), found["error"].tolist(), found["side"].tolist(), strict=True)
    sets = zip(*(sets_of(found, name) for name in ("samples", "near", "like")), strict=True)
    return [
        _Candidate(members, Separation(z, error), int(side), near, like)
        for (members, near, like), (z, error, side) in zip(sets, numbers, strict=True)
    ]


def _never_both(
    candidates: list[_Candidate], evidence: list[Evidence], verdicts: list[Verdict]
) -> list[Verdict]:
    """Of a class that falls into two, both sides were not planted; if both look so, who knows which."""
    planted = [
        each.label
        for candidate, each, verdict in zip(candidates, evidence, verdicts, strict=True)
        if candidate.side != NO_SIDE and verdict == "planted"
    ]
    both = {label for label in planted if planted.count(label) > 1}
    return [
        "undecided" if candidate.side != NO_SIDE and each.label in both else verdict
        for candidate, each, verdict in zip(candidates, evidence, verdicts, strict=True)
    ]


def _withheld(candidates: list[_Candidate], n_judges: int, n_samples: int) -> BoolArray:
    """Judges by samples: who is judged by whom, and therefore not met; nor is what is like it elsewhere.

    All groups by all, but of a class that falls into two each side by every second judge: a judge that
    knows neither does not know the class.
    """
    turn = 1 + np.arange(n_judges) % 2
    withheld = np.zeros((n_judges, n_samples), dtype=np.bool_)
    for each in candidates:
        by = turn == each.side if each.side != NO_SIDE else np.ones(n_judges, dtype=np.bool_)
        withheld[:, np.concatenate([each.members, each.like])] |= by[:, None]
    return withheld


def _result(judges: _Panel, heard: BoolArray, judged: _Judged, canaries: Canaries, run: _Run) -> Sanitization:
    """The decision about the user's samples. A group of canaries for the most part is none of theirs."""
    labels, evidence, verdicts = run.labels, judged.evidence, judged.verdicts
    component = np.zeros(len(labels), dtype=np.int64)
    for k, each in enumerate(judged.candidates, start=1):
        component[each.members] = k
    votes = _votes(judges, heard)
    goes = np.array([False, *(verdict == "planted" for verdict in verdicts)])
    found = canaries.found(~goes[component])
    own = np.flatnonzero(canaries.own)
    component, labels = component[own], labels[own]
    sizes = np.bincount(component, minlength=len(goes))
    theirs = [k for k, each in enumerate(evidence, start=1) if 2 * sizes[k] >= each.size]
    number = np.zeros(len(goes), dtype=np.int64)
    number[theirs] = np.arange(1, len(theirs) + 1)
    keep = ~(goes & (number > 0))[component]
    votes = replace(
        votes, predictions=votes.predictions[:, own], losses=votes.losses[:, own], asked=votes.asked[:, own]
    )
    predicted, _ = count_votes(
        votes.predictions, labels,
        n_classes=int(labels.max()) + 1, rng=run.seeds.stream("ties"), asked=votes.asked,
    )  # fmt: skip
    doubt = suspicion_from_losses(votes.losses.astype(np.float64), asked=votes.asked)
    return Sanitization(
        keep=keep,
        suspicion=_suspicion(doubt, keep),
        predicted=predicted,
        components=number[component][None, :],
        cost=run.workshop.cost,
        groups=tuple(_group(replace(evidence[k - 1], size=int(sizes[k])), verdicts[k - 1]) for k in theirs),
        notes={
            "vote_accuracy": _agreement(predicted == labels, component == 0),
            "canaries": [asdict(canary) for canary in found],
        },
        votes=votes,
    )


def _agreement(agrees: BoolArray, rest: BoolArray) -> float:
    """Among what is in no group; among all where nothing is left."""
    return float(agrees[rest].mean() if rest.any() else agrees.mean())


def _suspicion(doubt: FloatArray, keep: BoolArray) -> FloatArray:
    """What is removed comes before all else."""
    return np.asarray(np.where(keep, doubt / 2.0, (1.0 + doubt) / 2.0))


def _group(evidence: Evidence, verdict: Verdict) -> Group:
    numbers: dict[str, Any] = {
        "met": evidence.met.z,
        "met_error": evidence.met.error,
        "unmet": evidence.unmet.z,
        "unmet_error": evidence.unmet.error,
        "kept": evidence.kept,
        "kept_error": evidence.kept_error,
        "agreement": evidence.agreement,
        "elsewhere": evidence.elsewhere,
    }
    return Group(
        evidence.label, evidence.size, verdict == "planted", evidence.called, numbers,
        undecided=verdict == "undecided", reason=evidence.reason(verdict),
    )  # fmt: skip


def _votes(judges: _Panel, heard: BoolArray) -> VoteRecord:
    """Of what was withheld those that it was withheld from, of the rest those that did not train on it.

    What follows a planted group was not withheld: it is of the rest here.
    """
    return VoteRecord(
        tuple(f"judge {j + 1}" for j in range(len(heard))),
        judges.predictions,
        judges.losses,
        np.where(heard.any(axis=0), heard, judges.unseen),
    )
