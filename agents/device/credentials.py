"""Where the push token comes from: the environment, a keyring, or a file that only its owner can read. Never an argument.

What stands on a command line is seen by every process of the machine and kept in the shell's history.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from harness.errors import UsageError
from harness.folders import config_dir

TOKEN_VARIABLE = "WEIGHBRIDGE_TOKEN"  # noqa: S105 - the name of a variable, no secret
TOKEN_FILE_VARIABLE = "WEIGHBRIDGE_TOKEN_FILE"  # noqa: S105 - the name of a variable, no secret
KEYRING_SERVICE = "weighbridge"
_MAX_TOKEN_BYTES = 4096


def default_token_file() -> Path:
    """Return the file that is read when nothing else is said."""
    return config_dir() / "token"


def read_token(server: str, token_file: Path | None = None) -> str:
    """Return the token for `server` (its address without a path).

    Asked in this order: `token_file`, WEIGHBRIDGE_TOKEN, the file that WEIGHBRIDGE_TOKEN_FILE names, the keyring (when the
    package is installed; service "weighbridge", user name = the server's address), <config>/token. Raises UsageError when
    there is none, or when a file can be read by others.
    """
    if token_file is not None:
        return _from_file(token_file)
    if value := os.environ.get(TOKEN_VARIABLE, "").strip():
        return _checked(value, TOKEN_VARIABLE)
    if named := os.environ.get(TOKEN_FILE_VARIABLE):
        return _from_file(Path(named).expanduser())
    if kept := _from_keyring(server):
        return _checked(kept, "the keyring")
    if default_token_file().exists():
        return _from_file(default_token_file())
    raise UsageError(
        f"There is no token for {server}.",
        f"Make one there with `weigh serve token create DEVICE`, then put it into {default_token_file()} (mode 0600) "
        f"or into the variable {TOKEN_VARIABLE}.",
    )


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            # Windows has no such bits; its user profile is private by default.
            if os.name == "posix" and mode & 0o077:
                raise UsageError(
                    f"The token file {path} can be read by others (mode {mode:04o}).", f"Run: chmod 600 {path}"
                )
            data = file.read(_MAX_TOKEN_BYTES + 1)
    except OSError as error:
        raise UsageError(f"The token file {path} cannot be read: {error.strerror or error}.") from error
    return _checked(data.decode("ascii", errors="replace").strip(), str(path))


def _checked(token: str, place: str) -> str:
    if not token or len(token) > _MAX_TOKEN_BYTES or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"What stands in {place} is not a token.", "It is one line that begins with 'wb_'.")
    return token


def _from_keyring(server: str) -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return None
    try:
        found: str | None = keyring.get_password(KEYRING_SERVICE, server)
    except (KeyringError, OSError, RuntimeError):
        found = None  # no service on this machine (a board without a desktop); the other places are asked
    return found
