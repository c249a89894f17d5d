"""`weigh models`: which model files exist, from where, and having them before they are needed."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from harness.artifacts import ModelFile
    from harness.models.store import FormatStatus, ModelStore

Names = Annotated[
    list[str] | None, typer.Argument(help="Models by name; all of them without one.", metavar="[NAME]...")
]
Offline = Annotated[bool, typer.Option("--offline", help="Fetch nothing; use what the cache has.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def register(app: typer.Typer) -> None:
    """Add `weigh models` to the front door."""
    models = typer.Typer(
        help="The suite's model files: what exists, from where, under which licence.", no_args_is_help=True
    )
    models.command("list")(list_models)
    models.command("fetch")(fetch_models)
    models.command("build")(build_models)
    models.command("path")(model_path)
    app.add_typer(models, name="models")


def list_models(names: Names = None, as_json: AsJson = False) -> None:
    """Show each model's formats and precisions: from where, licence, size, hash, and whether it is in the cache.

    Example: weigh models list efficientnet-lite0
    """
    store = _store(offline=True)
    rows = [status for name in _chosen(names) for status in store.formats(name)]
    if as_json:
        from dataclasses import asdict

        typer.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    _print_table(rows, store.cache.root)


def fetch_models(names: Names = None, offline: Offline = False) -> None:
    """Fetch the published files of models into the cache, checked against their pinned SHA-256.

    Example: weigh models fetch efficientnet-lite0 basic-pitch
    """
    from harness.models.catalog import find_model

    store = _store(offline)
    chosen = _chosen(names) if names else _without_large_downloads()
    count = store.fetch_sources(chosen)
    typer.echo(f"{count} published file{'' if count == 1 else 's'} of {len(chosen)} models in {store.cache.root}.")
    left_out = [name for name in _chosen(None) if name not in chosen]
    if not names and left_out:
        sizes = ", ".join(
            f"{name} ({sum(s.bytes for s in find_model(name).sources) / 1e6:.0f} MB)" for name in left_out
        )
        typer.echo(f"Fetched only when named: {sizes}.", err=True)


def build_models(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Models by name, all of them without one; or one ONNX file of your own.", metavar="[NAME]..."
        ),
    ] = None,
    model_format: Annotated[
        str | None, typer.Option("--format", help="Only this format: onnx, openvino, tflite or coreml.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Only this precision: fp32, fp16, int8, int8-float-ends or int4.")
    ] = None,
    batch: Annotated[int, typer.Option(help="The batch of formats that are made for one.", min=1)] = 1,
    calibration: Annotated[
        Path | None, typer.Option(help="For your own model in int8: a folder of pictures that set the scales.")
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="For your own model in int8: the workload that prepares pictures alike.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="For your own model: where to put a copy of what is built.")
    ] = None,
    offline: Offline = False,
) -> None:
    """Fetch and build model files now instead of when a run first needs them. The same bytes every time.

    Examples: weigh models build efficientnet-lite0 --precision int8

    weigh models build model.onnx --precision int8 --calibration pictures --workload efficientnet-lite0
    """
    from harness.errors import ModelError, NotDone, UsageError
    from harness.models.catalog import FORMATS, PRECISIONS

    for what, value, allowed in (("format", model_format, FORMATS), ("precision", precision, PRECISIONS)):
        if value is not None and value not in allowed:
            raise UsageError(f"There is no {what} {value!r}.", f"Allowed: {', '.join(allowed)}.")
    if names and any(Path(name).suffix.lower() == ".onnx" for name in names):
        _build_own(names, model_format, precision, calibration, workload, output)
        return
    for option, given in (("--calibration", calibration), ("--workload", workload), ("--output", output)):
        if given is not None:
            raise UsageError(f"{option} is for an ONNX file of your own.", "Leave it out for models of the catalogue.")
    store = _store(offline)
    wanted = [
        status
        for name in (_chosen(names) if names else _without_large_downloads())
        for status in store.formats(name)
        if model_format in (None, status.format) and precision in (None, status.precision)
    ]
    if not wanted:
        raise UsageError("Nothing exists in that format and precision.", "See `weigh models list`.")
    with contextlib.suppress(ModelError):  # what cannot be fetched is said below, model by model
        store.prefetch((status.model, status.format, status.precision) for status in wanted)
    failed = 0
    for status in wanted:
        try:
            file = store.ensure(status.model, status.format, status.precision, batch)
        except ModelError as error:
            failed += 1
            typer.echo(f"{status.model} {status.format} {status.precision}: {error}", err=True)
            continue
        _say_built(status.model, file)
    if failed:
        raise NotDone(f"{failed} of {len(wanted)} model files could not be built.", "The reasons stand above.")


def _build_own(
    names: list[str],
    model_format: str | None,
    precision: str | None,
    calibration: Path | None,
    workload: str | None,
    output: Path | None,
) -> None:
    """Build an ONNX file of the user's in a lower precision."""
    from harness.errors import UsageError
    from harness.models.file_precision import file_precision
    from harness.models.own_quantisation import quantise_own
    from harness.models.user_model import UserModel

    if len(names) != 1 or model_format not in (None, "onnx") or precision is None:
        raise UsageError(
            "Of your own models, one ONNX file at a time is built, as ONNX, in a precision that you name.",
            "For example: weigh models build model.onnx --precision fp16. `weigh run` converts to other formats by itself.",
        )
    path = Path(names[0])
    if not path.is_file():
        raise UsageError(f"There is no model file {path}.", "Correct the path.")
    own = UserModel(path.absolute(), "onnx", precision=file_precision(path, "onnx") or "fp32")
    file = quantise_own(_store(offline=True), own, precision, calibration, workload)
    if output is not None:
        import shutil

        try:
            shutil.copyfile(file.path, output)
        except OSError as error:
            raise UsageError(f"{output} cannot be written: {error.strerror}.", "Name another file.") from error
    _say_built(path.name, file)


def _say_built(name: str, file: ModelFile) -> None:
    artifact = file.artifact
    by = "" if artifact.calibration is None else f", calibrated by {artifact.calibration}"
    typer.echo(
        f"{name} {artifact.format} {artifact.precision}: {artifact.bytes / 1e6:.1f} MB{by}, "
        f"sha256 {artifact.sha256}, {file.path}"
    )


def model_path(
    name: Annotated[str, typer.Argument(help="A model by name.")],
    model_format: Annotated[str, typer.Argument(metavar="FORMAT", help="onnx, openvino, tflite or coreml.")],
    precision: Annotated[str, typer.Option(help="fp32, fp16, int8, int8-float-ends or int4.")] = "fp32",
    batch: Annotated[int, typer.Option(help="The batch of formats that are made for one.", min=1)] = 1,
    offline: Offline = False,
) -> None:
    """Print where a model's file lies, fetching and building it first where needed.

    Example: weigh models path basic-pitch onnx
    """
    typer.echo(str(_store(offline).ensure(name, model_format, precision, batch).path))


def _store(offline: bool) -> ModelStore:
    from harness.folders import cache_dir
    from harness.models.progress import ConsoleProgress
    from harness.models.store import ModelStore

    return ModelStore(cache_dir(), offline, ConsoleProgress())


def _chosen(names: list[str] | None) -> list[str]:
    from harness.models.catalog import catalogue, find_model

    return [find_model(name).name for name in names] if names else list(catalogue())


def _without_large_downloads() -> list[str]:
    """Return the models that come inside packages; those by URL are fetched only when they are named."""
    from harness.models.catalog import catalogue

    return [name for name, entry in catalogue().items() if not any(s.source.startswith("url:") for s in entry.sources)]


def _print_table(rows: list[FormatStatus], root: Path) -> None:
    """Print a heading and a table per model; lines may be longer than the screen, so that nothing is cut."""
    from itertools import groupby

    from rich.console import Console
    from rich.text import Text

    from harness.models.catalog import find_model

    console = Console(soft_wrap=True, highlight=False)
    for name, group in groupby(rows, key=lambda row: row.model):
        entry = find_model(name)
        console.print(
            Text(name, style="bold") + Text(f"  {entry.title}. {entry.licence}. {entry.homepage}", style="dim")
        )
        if entry.note:
            console.print(Text(f"  {entry.note}", style="dim"))
        for row in group:
            size = "not built" if row.bytes is None else f"{row.bytes / 1e6:.1f} MB"
            held = "in cache" if row.cached else (row.reason or "not in cache")
            line = f"  {row.format:<10}{row.precision:<17}{size:>9}  {(row.sha256 or '-')[:12]:<14}{held:<14}{_origin(row)}"
            console.print(Text(line))
    console.print(Text(f"Cache: {root}. Full hashes: weigh models list --json", style="dim"))


def _origin(row: FormatStatus) -> str:
    """Return where a file comes from, shortened to the package and the file's own name."""
    from harness.models.sources import SCHEMES, parse_source

    text = row.source or ""
    if text.startswith(tuple(f"{scheme}:" for scheme in SCHEMES)):
        source = parse_source(text)
        text = f"{source.name} of {source.scheme}:{source.location}" if source.members else text
    if row.origin == "shipped":
        return text
    by = "" if row.calibration is None else f", calibrated by {row.calibration} ({row.calibration_samples} samples)"
    return f"built from {text}{by}"
