"""Alembic's entry: runs on the connection that `db.store` hands over. There is no alembic.ini."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext

from db.schema import Base
from db.schema.base import UtcDateTime

VERSION_TABLE = "weighbridge_version"


def render_item(kind: str, item: Any, autogen_context: AutogenContext) -> str | Literal[False]:
    """Write plain SQLAlchemy types into new migrations: a migration must not change when our own type does."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
    render_as_batch=connection.dialect.name == "sqlite",
    render_item=render_item,
)
with context.begin_transaction():
    context.run_migrations()
