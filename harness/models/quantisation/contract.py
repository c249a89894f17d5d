"""What every way of making a file of lower precision is given, and gives back. Pure data; no runtime is imported here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from harness.artifacts import ModelFile
from harness.errors import ModelError
from harness.models.converted import Built
from harness.models.progress import Progress

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]  # role -> canonical array (pictures NCHW float32 and so on), batch of 1

FLOAT_ENDS = "int8-float-ends"


@dataclass(frozen=True)
class Settings:
    """How to quantise: a catalogue entry's `precision` and `parameters`, read strictly by the method that uses them."""

    precision: str  # of harness.models.catalog.PRECISIONS
    parameters: Mapping[str, Any]

    @property
    def float_ends(self) -> bool:
        """Whether the first and the last layers with weights are kept in float, being the most sensitive."""
        return self.precision == FLOAT_ENDS

    def check_names(self, *allowed: str) -> None:
        """Refuse parameters that the method does not know. Raises ModelError."""
        for name in self.parameters:
            if name not in allowed:
                raise ModelError(
                    f"The recipe for {self.precision} has no parameter {name!r}.",
                    f"Allowed: {', '.join(allowed) or 'none'}.",
                )

    def text(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """Return one of the allowed words. Raises ModelError."""
        value = self.parameters.get(name, default)
        if value not in allowed:
            raise ModelError(
                f"The parameter {name} for {self.precision} cannot be {value!r}.", f"Allowed: {', '.join(allowed)}."
            )
        return str(value)

    def whole(self, name: str, default: int, minimum: int = 1) -> int:
        """Return a whole number of at least `minimum`. Raises ModelError."""
        value = self.parameters.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ModelError(f"The parameter {name} must be a whole number of at least {minimum}, not {value!r}.")
        return value


class Calibration(Protocol):
    """Samples that set the scales of a quantised file: prepared as the workload's task prepares them.

    Every `iter()` begins anew and gives the same arrays in the same order, one sample at a time (batch of 1), by canonical
    role and in canonical layout; a file's ports say how to lay them out (`harness.worker.tensors.TensorMap.to_file`
    does it for a loaded session). A network with state gets the state that the fp32 file gave for the sample before.
    """

    @property
    def identity(self) -> str:
        """name@digest of the samples, for the record: Artifact.calibration."""
        ...

    @property
    def contents(self) -> tuple[str, ...]:
        """SHA-256 of what the samples are made of (files; texts), sorted: none of them may be evaluation data."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Inputs]: ...


Build = Callable[[ModelFile, "Calibration | None", Settings, Progress], Built]


@dataclass(frozen=True)
class Method:
    """One recipe for files of lower precision.

    `build(source, calibration, settings, progress)` reads the file `source` (of this model, in the format and precision
    that `source` below names, made for the wanted batch where its format is made for one) and returns the new file's bytes,
    **the same bytes every time**, with ports of the same roles in the same order. `calibration` is None where
    `calibrated` is False. It raises ModelError in one sentence with the way out. A folder is given as
    `harness.models.archives.pack_folder` zips it, with the suffix ".zip".
    """

    version: str  # raised whenever what it writes changes
    tools: tuple[str, ...]  # distributions whose versions decide the bytes, and which must be installed to build
    source: tuple[str, str]  # format and precision of the file that it starts from
    calibrated: bool
    build: Build
