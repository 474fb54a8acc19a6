"""The definitions in proto/ themselves: that what is generated from them is fresh, and that they are well written."""

import re
from collections.abc import Iterator
from pathlib import Path

import grpc_tools
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

from tools import generate

# What comments are found by: numbers of fields in descriptor.proto.
MESSAGE, ENUM, SERVICE, FIELD, NESTED, NESTED_ENUM, ONEOF = 4, 5, 6, 2, 3, 4, 8


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[FileDescriptorProto]:
    found = tmp_path_factory.mktemp("proto") / "all.bin"
    known = Path(grpc_tools.__file__).parent / "_proto"
    names = sorted(path.relative_to(generate.PROTO).as_posix() for path in generate.PROTO.glob("skyband/v1/*.proto"))
    options = [f"-I{generate.PROTO}", f"-I{known}", f"--descriptor_set_out={found}", "--include_source_info"]
    assert protoc.main(["protoc", *options, *names]) == 0
    return list(FileDescriptorSet.FromString(found.read_bytes()).file)


def messages(file: FileDescriptorProto) -> Iterator[tuple[DescriptorProto, tuple[int, ...]]]:
    for index, message in enumerate(file.message_type):
        yield from nested(message, (MESSAGE, index))


def nested(message: DescriptorProto, path: tuple[int, ...]) -> Iterator[tuple[DescriptorProto, tuple[int, ...]]]:
    yield message, path
    for index, inner in enumerate(message.nested_type):
        if not inner.options.map_entry:
            yield from nested(inner, (*path, NESTED, index))


def enums(file: FileDescriptorProto) -> Iterator[tuple[EnumDescriptorProto, tuple[int, ...]]]:
    yield from ((enum, (ENUM, index)) for index, enum in enumerate(file.enum_type))
    for message, path in messages(file):
        yield from ((enum, (*path, NESTED_ENUM, index)) for index, enum in enumerate(message.enum_type))


def things(file: FileDescriptorProto) -> Iterator[tuple[str, tuple[int, ...]]]:
    for message, path in messages(file):
        yield message.name, path
        yield from ((f"{message.name}.{f.name}", (*path, FIELD, i)) for i, f in enumerate(message.field))
        for index, oneof in enumerate(message.oneof_decl):
            # `optional` makes a oneof of its own.
            if not any(f.proto3_optional and f.oneof_index == index for f in message.field):
                yield f"{message.name}.{oneof.name}", (*path, ONEOF, index)
    for enum, path in enums(file):
        yield enum.name, path
        yield from ((value.name, (*path, 2, index)) for index, value in enumerate(enum.value))
    for index, service in enumerate(file.service):
        yield service.name, (SERVICE, index)
        yield from ((method.name, (SERVICE, index, 2, i)) for i, method in enumerate(service.method))


def test_what_is_committed_is_what_is_generated() -> None:
    assert list(generate.stale()) == [], "run: python -m tools.generate"


def test_every_message_field_choice_and_call_is_documented(files: list[FileDescriptorProto]) -> None:
    silent = []
    for file in files:
        said = {
            tuple(location.path) for location in file.source_code_info.location if location.leading_comments.strip()
        }
        silent += [name for name, path in things(file) if path not in said]
    assert silent == []


def test_fields_are_in_lower_case_and_choices_bear_the_name_of_their_enum(files: list[FileDescriptorProto]) -> None:
    for file in files:
        assert file.package == "skyband.v1"
        for message, _ in messages(file):
            assert all(re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", field.name) for field in message.field), message.name
        for enum, _ in enums(file):
            prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper()
            assert enum.value[0].name == f"{prefix}_UNSPECIFIED"
            assert all(value.name.startswith(f"{prefix}_") for value in enum.value)


def test_every_call_takes_a_request_of_its_own_name(files: list[FileDescriptorProto]) -> None:
    for file in files:
        for service in file.service:
            assert service.name.endswith("Service")
            for method in service.method:
                assert method.input_type == f".skyband.v1.{method.name}Request"


def test_every_change_can_be_retried_and_tried_out(files: list[FileDescriptorProto]) -> None:
    fields = {message.name: {f.name for f in message.field} for file in files for message, _ in messages(file)}
    changes = [name for name in fields if re.match("(Create|Update|Delete|Pause|Resume|Regenerate).*Request", name)]
    assert len(changes) == 12
    assert [name for name in changes if not {"request_id", "validate_only"} <= fields[name]] == []
