"""A JVM trusts and asks whom this Python does."""

import ssl
import subprocess
from pathlib import Path

import pytest

from services.runtime.embedded import trust
from services.runtime.embedded.java import find_java
from services.runtime.embedded.trust import key_store, network_options


def test_java_reads_the_key_store_and_finds_all_certificates_in_it(tmp_path: Path) -> None:
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)[:3]
    if not certificates:
        pytest.skip("this Python has no certificates of its own")
    store = tmp_path / "trusted.jks"
    store.write_bytes(key_store(certificates))
    command = [find_java().launcher, "-m", "java.base/sun.security.tools.keytool.Main", "-list", "-keystore", store]
    listed = subprocess.run([*command, "-storepass", trust.PASSWORD], capture_output=True, text=True, check=False)
    assert listed.stdout.count("trustedCertEntry") == len(certificates), listed.stdout + listed.stderr


def test_a_trust_store_that_the_user_names_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.trustStore=/own.jks")
    assert not any("trustStore" in option for option in network_options(tmp_path))
    assert not list(tmp_path.iterdir())


def test_proxies_are_handed_on() -> None:
    proxies = {"https": "http://proxy.example:3128", "no": ".inside.example,localhost"}
    assert trust._proxy_options(proxies) == [
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=inside.example|*.inside.example|localhost|*.localhost",
    ]


def test_without_a_proxy_nothing_is_said_of_proxies() -> None:
    assert trust._proxy_options({"no": "localhost"}) == []
