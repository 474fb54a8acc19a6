"""Page tokens: where the next page of a list begins, opaque to whoever sends them back."""

import base64
import binascii
import json

from skyband.errors import DefinitionError

__all__ = ["page_token", "resume_after"]


def page_token(collection: str, last: str) -> str:
    """Return the token of the page behind the resource `last` of `collection`."""
    return base64.urlsafe_b64encode(json.dumps([collection, last]).encode()).decode()


def resume_after(token: str, collection: str) -> str:
    """Return the name behind which the page begins, ``""`` for the first; DefinitionError for another list's token."""
    if not token:
        return ""
    try:
        found = json.loads(base64.urlsafe_b64decode(token.encode("ascii")))
    except (binascii.Error, UnicodeError, json.JSONDecodeError):
        found = None
    match found:
        case [str(listed), str(last)] if listed == collection:
            return last
    message = f"page_token is not one of a list of {collection}; begin again without it"
    raise DefinitionError(message, field="page_token")
