"""`weigh run --plan`: what would run, what cannot and why, and how long it would take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.runner.plan import Intent

if TYPE_CHECKING:
    from agents.device.run_suite import Plan

COLUMNS = ("workload", "backend", "target", "scenario", "precision", "batch", "threads", "trials")
NUMBERS = ("batch", "threads", "trials")


def print_plan(plan: Plan) -> None:
    """Print the plan on standard output."""
    import typer
    from rich.text import Text

    from agents.device.run_report import plain_table
    from harness.terminal import output_console

    table = plain_table(f"{plan.suite.name} {plan.suite.version}: {plan.suite.title}", COLUMNS, NUMBERS)
    running = 0
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for intent in plan.intents:
        reason = plan.reason(intent)
        if reason is not None:
            reasons.setdefault((intent.backend, intent.target, reason), []).append(intent.workload.name)
            continue
        running += 1
        table.add_row(*map(Text, _cells(intent)))
    console = output_console()
    console.print(table)
    for (backend, target, reason), workloads in reasons.items():
        console.print(Text(f"Not here, {backend} {target} ({len(workloads)} cases): {reason}"), soft_wrap=True)
    typer.echo(
        f"{running} of {len(plan.intents)} cases can run here, in {_minutes(plan.expected_s, plan.longest_s)} "
        "beside what has to be fetched."
    )
    for note in plan.notes:
        typer.echo(note)
    if plan.suite.budget_s is not None:
        typer.echo(f"After {plan.suite.budget_s / 60:.0f} minutes of measuring no further round begins.")


def _cells(intent: Intent) -> tuple[str, ...]:
    group = intent.group
    threads = str(intent.threads) if intent.threads is not None else "default"
    trials = str(group.trials) if group.fixed else f"{group.trials} to {group.most_trials}"
    return (
        intent.workload.name, intent.backend, intent.target, scenario_in_words(intent), _precision(intent),
        str(intent.batch), threads, trials,
    )  # fmt: skip


def scenario_in_words(intent: Intent) -> str:
    """Return the scenario with its parameters, such as "cold_start file_cache=cold"."""
    given = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in _said(intent)]
    slots = [f"slots={intent.slots}"] if intent.slots is not None else []
    return " ".join([intent.scenario, *given, *slots])


def _said(intent: Intent) -> list[tuple[str, object]]:
    return [(name, value) for name, value in intent.parameters.items() if value is not None]


def _precision(intent: Intent) -> str:
    """Both, where the file's and the one asked for differ."""
    if intent.artifact_precision == intent.precision:
        return intent.precision
    return f"{intent.artifact_precision} as {intent.precision}"


def _minutes(least_s: float, most_s: float) -> str:
    least, most = max(1, round(least_s / 60)), max(1, round(most_s / 60))
    if least == most:
        return f"about {least} minute{'s' if least > 1 else ''}"
    return f"about {least} to {most} minutes"
