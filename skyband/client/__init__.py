"""The client of a running Skyband: `Client`, and for asyncio `skyband.client.aio.Client`."""

from skyband.client.connection import Tls
from skyband.client.sync import Client, QueryHandle
from skyband.client.updates import Update

__all__ = ["Client", "QueryHandle", "Tls", "Update"]
