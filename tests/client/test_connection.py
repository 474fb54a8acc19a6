import shutil
import subprocess
from pathlib import Path

import grpc
import pytest

from services.control.servicer import ControlServicer
from skyband.client import Client
from skyband.client.connection import Tls, check_address
from skyband.errors import DefinitionError, InputError, NotFoundError, SkybandError
from skyband.v1 import control_pb2_grpc
from tests.client.conftest import Deployment
from tests.services.serving import Server


@pytest.mark.parametrize("address", ["localhost:50051", "[::1]:50051", "dns:///skyband.example:50051", "unix:///run/s"])
def test_an_address_is_a_host_and_a_port_or_a_target_of_grpc(address: str) -> None:
    assert check_address(address) == address


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", ":50051", "localhost:port"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(DefinitionError, match="must be host:port, such as localhost:50051"):
        check_address(address)


def test_certificate_and_key_belong_together(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="belong together"):
        Tls(certificate=tmp_path / "cert.pem").credentials()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*ca\.pem"):
        Tls(ca=tmp_path / "ca.pem").credentials()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made with openssl")
def test_calls_are_encrypted_for_who_trusts_the_server(tmp_path: Path, deployment: Deployment) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    servicer = ControlServicer(deployment.call, deployment.resolve)
    server = Server(lambda s: control_pb2_grpc.add_ControlServiceServicer_to_server(servicer, s), tls=credentials)
    with Client(server.address, tls=Tls(ca=certificate)) as client, pytest.raises(NotFoundError):
        client.get_group("none")
    with Client(server.address, tls=Tls(), retry_s=0.01) as client, pytest.raises(SkybandError, match="cannot reach"):
        client.get_group("none")
    with Client(server.address, retry_s=0.01) as client, pytest.raises(SkybandError, match="cannot reach"):
        client.get_group("none")
    server.stop()
