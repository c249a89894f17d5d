"""Keep rate curves, drift, sampling, the harness's own cost, and what else went on during a trial."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
COLUMNS = (
    ("artifacts", "calibration", sa.String()),
    ("measurements", "throughput", DOCUMENT),
    ("measurements", "sampling", DOCUMENT),
    ("measurements", "rate_curve", DOCUMENT),
    ("measurements", "over_time", DOCUMENT),
    ("trials", "discarded_unsteady", sa.BigInteger()),
    ("trials", "unsteady_reason", sa.String()),
    ("trials", "conditions", DOCUMENT),
)


def upgrade() -> None:
    for table, name, kind in COLUMNS:
        op.add_column(table, sa.Column(name, kind))
    op.create_table(
        "run_harness",
        sa.Column("run_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("self_cost", DOCUMENT),
        sa.Column("preparation", DOCUMENT),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_harness_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_harness"),
    )


def downgrade() -> None:
    op.drop_table("run_harness")
    for table, name, _ in reversed(COLUMNS):
        op.drop_column(table, name)
