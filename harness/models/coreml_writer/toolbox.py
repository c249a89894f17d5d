"""coremltools, imported when it is needed and kept quiet: warnings about missing torch and progress bars are no news."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from harness.errors import ModelError


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Swallow what coremltools writes to stderr and to its log below an error, while the block runs."""
    logger = logging.getLogger("coremltools")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def coremltools() -> Any:
    """The package; ModelError where it is not installed. The first import takes seconds."""
    try:
        with quiet():
            import coremltools as package
    except ImportError as error:
        raise ModelError(
            "Writing a Core ML package needs the package coremltools, which is not installed.",
            "Install it with `pip install 'weighbridge[convert]'`.",
        ) from error
    return package


def builder() -> Any:
    """coremltools' MIL builder: one function per operator."""
    coremltools()
    from coremltools.converters.mil import Builder

    return Builder
