"""Whom a JVM trusts and which proxy it asks: the same as this Python, which already fetched its packages here.

A Java runtime has certificates of its own and does not read the machine's; behind a company's proxy it would trust
nobody. A Java key store (JKS) that holds certificates alone is a few fields and a digest, so it is written here.
"""

import hashlib
import os
import ssl
import struct
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path

__all__ = ["key_store", "network_options"]

# The format demands a password, and a digest that begins with these words; what is stored is public.
PASSWORD = "changeit"
_WHITENER = b"Mighty Aphrodite"
_MAGIC, _VERSION, _CERTIFICATE = 0xFEEDFEED, 2, 2


def key_store(certificates: Sequence[bytes]) -> bytes:
    """Return a Java key store (JKS, version 2) that trusts these certificates (DER)."""
    content = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        content += struct.pack(">I", _CERTIFICATE) + _text(f"authority-{number}") + struct.pack(">q", 0)
        content += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    digest = hashlib.sha1(PASSWORD.encode("utf-16-be") + _WHITENER + content, usedforsecurity=False)
    return content + digest.digest()


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">H", len(data)) + data


def network_options(folder: Path) -> list[str]:
    """Return the options with which a JVM trusts and asks whom this Python does; writes a key store into `folder`.

    Without certificates of its own (Python from python.org on macOS), or if JAVA_TOOL_OPTIONS names a trust store, the
    JVM's own are used.
    """
    options = _proxy_options(urllib.request.getproxies())
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if certificates and "javax.net.ssl.trustStore" not in os.environ.get("JAVA_TOOL_OPTIONS", ""):
        path = folder / "trusted.jks"
        path.write_bytes(key_store(certificates))
        options += [
            f"-Djavax.net.ssl.trustStore={path}",
            "-Djavax.net.ssl.trustStoreType=JKS",
            f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
        ]
    return options


def _proxy_options(proxies: dict[str, str]) -> list[str]:
    options = []
    for scheme in ("http", "https"):
        proxy = urllib.parse.urlsplit(proxies.get(scheme, ""))
        if proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    without = [name.lstrip(".") for name in proxies.get("no", "").split(",") if name.strip()]
    if options and without:
        options.append("-Dhttp.nonProxyHosts=" + "|".join(part for name in without for part in (name, f"*.{name}")))
    return options
