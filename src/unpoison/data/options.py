"""How a dataset is to be read."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.errors import InputError

DEFAULT_MAX_PIXELS = 64_000_000
DEFAULT_MAX_BYTES = 4 * 2**30
LARGEST_IMAGE_SIZE = 4096


@dataclass(frozen=True)
class LoadOptions:
    """Choices a file does not make for itself. The defaults suit most data.

    >>> LoadOptions(label="Label").max_pixels
    64000000
    """

    label: str | None = None
    """The column of a table that holds the labels; tables need it, Hugging Face datasets often do not."""
    text: str | None = None
    """A column of a table that is text. Other columns are still detected by themselves."""
    id_column: str | None = None
    """The column of a table that names each sample; it is no feature."""
    split: str | None = None
    """The split of a Hugging Face dataset; ``train`` if not given."""
    image: str | None = None
    """The column of a Hugging Face dataset that holds the images, where there are several."""
    image_size: int | None = None
    """Side in pixels for images in files. By default 32, or the median shorter side where that is less."""
    max_pixels: int = DEFAULT_MAX_PIXELS
    """Refuse any image with more. Pillow's own limit, about 89 million, holds besides."""
    max_bytes: int = DEFAULT_MAX_BYTES
    """Refuse data that takes more memory than this once decoded."""
    link: bool = True
    """Write image folders as hard links where possible: no space taken, but editing one name edits both.
    False always copies."""

    def __post_init__(self) -> None:
        for field in ("max_pixels", "max_bytes"):
            _check_count(field, getattr(self, field))
        if self.image_size is not None:
            _check_count("image_size", self.image_size)
            if self.image_size > LARGEST_IMAGE_SIZE:
                raise InputError(f"image_size must be at most {LARGEST_IMAGE_SIZE}, got {self.image_size}")
        if self.label is not None and self.label in (self.text, self.id_column, self.image):
            raise InputError(
                f"the column {self.label!r} is given as the label and as text, id or image; "
                "name different columns"
            )
        if self.text is not None and self.text == self.id_column:
            raise InputError(f"the column {self.text!r} is given as text and as id; name different columns")
        if self.text is not None and self.image is not None:
            raise InputError(
                f"the column {self.text!r} is given as text and {self.image!r} as image; judge one of them"
            )


def _check_count(field: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{field} must be a whole number of at least 1, got {value!r}")


DEFAULT_OPTIONS = LoadOptions()
