"""The secret that receipts are signed with, as Standard Webhooks writes it."""

import base64
import binascii

PREFIX = "whsec_"
# Bytes, as the specification has it.
SHORTEST, LONGEST = 24, 64

HOW_TO_MAKE_ONE = 'echo "whsec_$(openssl rand -base64 32)"'


def require_secret(secret: str) -> None:
    """Raise ValueError, which never shows the secret, unless it is of the form `whsec_<base64>`."""
    form = f"{PREFIX} and the base64 of {SHORTEST} to {LONGEST} bytes is expected"
    if not secret.startswith(PREFIX):
        raise ValueError(form)
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):  # ValueError: characters that are not ASCII
        raise ValueError(form) from None
    if not SHORTEST <= len(key) <= LONGEST:
        raise ValueError(form)
