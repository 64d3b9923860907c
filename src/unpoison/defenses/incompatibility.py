"""Our own defense behind the same protocol as the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from unpoison.core.checkpoint import Checkpoints
from unpoison.core.config import Settings, check_choice
from unpoison.core.learner import LearnerFactory
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import PRESETS, check_method, settings_for
from unpoison.core.tasks import Runner, run_serially
from unpoison.defenses.base import Decision
from unpoison.events import Listener, ignore
from unpoison.types import LabelArray


@dataclass(frozen=True)
class Incompatibility:
    """``core.pipeline.sanitize`` with the settings that ``method``, ``preset`` and ``changes`` name."""

    name: ClassVar[str] = "incompatibility"

    method: str = "ispl"
    """``ispl`` or ``groups``."""
    preset: str = "auto"
    """``paper-cifar10``, ``authors-gtsrb`` and so on (all for ``ispl``), or ``auto``."""
    _: KW_ONLY
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Single settings with other values than the preset's, such as ``{"restarts": 1}``."""
    networks: bool | None = None
    """Whether ``auto`` is to expect networks; by default, of any factory but scikit-learn's."""
    checkpoints: Checkpoints | None = field(default=None, compare=False)
    """Where finished parts of a run are kept, so that one that was stopped goes on."""

    def __post_init__(self) -> None:
        check_method(self.method)
        check_choice(self, "preset", PRESETS)
        check_choice(self, "networks", (None, True, False))

    def settings(self, labels: LabelArray, factory: LearnerFactory) -> Settings:
        """What a run on these labels uses."""
        from unpoison.learners.sklearn import SklearnFactory

        is_plain = isinstance(factory, SklearnFactory)
        return settings_for(
            labels,
            method=self.method,
            preset=self.preset,
            networks=not is_plain if self.networks is None else self.networks,
            **self.changes,
        )

    def judge(
        self,
        labels: LabelArray,
        factory: LearnerFactory,
        *,
        seed: int,
        runner: Runner = run_serially,
        listener: Listener = ignore,
    ) -> Decision:
        """As ``unpoison clean`` decides."""
        from unpoison.learners.choose import suited_to

        settings, suited = self.settings(labels, factory), suited_to(factory, self.method)
        found = sanitize(
            labels, suited, settings,
            seed=seed, runner=runner, listener=listener, checkpoints=self.checkpoints,
        )  # fmt: skip
        groups = () if self.method == "ispl" else found.groups  # there, what was removed of each class
        return Decision(
            found.keep, found.suspicion, found.cost, found.components, groups, found.voted,
            canaries=tuple(found.notes.get("canaries", ())),
        )  # fmt: skip
