"""What the commands that read a source have in common: its options, the learner's, the command as given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from unpoison.learners.defaults import LEARNERS, NETWORK_NAMES
from unpoison.learners.recipes import AUGMENTATIONS, PRECISIONS, RECIPES

if TYPE_CHECKING:
    from unpoison.data.options import LoadOptions
    from unpoison.learners.choose import LearnerChoice

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

_SOURCE: tuple[Decorator, ...] = (
    click.option("--label", metavar="COLUMN", help="Column of a table that holds the labels."),
    click.option(
        "--text", metavar="COLUMN", help="Column of a table that is text (found by itself otherwise)."
    ),
    click.option("--id", "id_column", metavar="COLUMN", help="Column of a table that names each sample."),
    click.option("--split", metavar="NAME", help="Split of an hf: dataset (train if not given)."),
    click.option(
        "--image", metavar="COLUMN", help="Column of an hf: dataset with the images, if there are several."
    ),
    click.option(
        "--image-size", type=click.IntRange(min=1), help="Side in pixels that folder images are scaled to."
    ),
)
_LEARNER: tuple[Decorator, ...] = (
    click.option(
        "--learner",
        metavar="NAME",
        default="auto",
        show_default=True,
        help=f"One of {', '.join((*LEARNERS, *NETWORK_NAMES))}, or your own network as module:callable. "
        "auto: a network for images of 16 pixels or more where torch is installed, logistic for the rest.",
    ),
    click.option("--recipe", type=click.Choice(RECIPES), help="How networks are trained (docs/training.md)."),
    click.option(
        "--augment",
        type=click.Choice(AUGMENTATIONS),
        help="How images are varied in training; by dataset and method.",
    ),
    click.option("--device", default="auto", show_default=True, help="For networks: auto, cpu, cuda or mps."),
    click.option("--precision", type=click.Choice(PRECISIONS), default="auto", show_default=True),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Threads of one network on a CPU. Unlike --workers it can change the last bits of a result.",
    ),
    click.option("--compile", is_flag=True, help="Pass networks through torch.compile."),
)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How a source is read (:func:`load_options`)."""
    return _with(command, _SOURCE)


def learner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which models are trained, and how (:func:`learner_choice`)."""
    return _with(command, _LEARNER)


def _with(command: Callable[..., Any], options: tuple[Decorator, ...]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


def load_options(given: dict[str, Any]) -> LoadOptions:
    """How the source is to be read, from the options of a command."""
    from unpoison.data.options import LoadOptions

    return LoadOptions(
        label=given["label"],
        text=given["text"],
        id_column=given["id_column"],
        split=given["split"],
        image=given["image"],
        image_size=given["image_size"],
        link=not given.get("copy", False),
    )


def learner_choice(given: dict[str, Any]) -> LearnerChoice:
    """The learner that the options of a command ask for."""
    from unpoison.learners.choose import LearnerChoice
    from unpoison.learners.recipes import TrainingOptions

    training = TrainingOptions(
        device=given["device"],
        precision=given["precision"],
        threads=given["threads"],
        compile=given["compile"],
    )
    return LearnerChoice(given["learner"], given["recipe"], training)


def command() -> str:
    """The command as one would type it."""
    import shlex

    return shlex.join(["unpoison", *sys.argv[1:]])
