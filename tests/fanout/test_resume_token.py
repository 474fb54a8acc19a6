import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.errors import DefinitionError
from skyband.fanout.resume_token import ResultPosition, ResumeToken

TOKENS = st.builds(
    ResumeToken,
    st.text(st.characters(codec="utf-8"), max_size=60),
    st.integers(0, 2**32 - 1),
    st.builds(ResultPosition, st.integers(0, 2**32 - 1), st.integers(0, 2**63 - 1)),
    st.none() | st.integers(-(2**61), 2**61),
)


@given(TOKENS)
def test_a_token_survives_its_text_and_the_text_fits_a_url(token: ResumeToken) -> None:
    text = token.encode()
    assert ResumeToken.decode(text) == token
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(TOKENS, st.data())
def test_a_token_with_one_character_changed_is_refused(token: ResumeToken, data: st.DataObject) -> None:
    text = token.encode()
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("AZaz09-_").filter(lambda c: c != text[place]))
    with pytest.raises(DefinitionError, match="damaged"):
        ResumeToken.decode(text[:place] + other + text[place + 1 :])


@given(st.text(max_size=200))
def test_any_other_text_is_refused_with_a_definition_error(text: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        ResumeToken.decode(text)
    assert refused.value.field == "resume_token"


@given(TOKENS, st.integers(1, 20))
def test_a_cut_token_is_refused(token: ResumeToken, cut: int) -> None:
    with pytest.raises(DefinitionError):
        ResumeToken.decode(token.encode()[:-cut])


def test_a_token_of_another_version_says_so() -> None:
    body = bytes([9]) + bytes(24) + b"q"
    text = base64.urlsafe_b64encode(body + zlib.crc32(body).to_bytes(4, "big")).decode().rstrip("=")
    with pytest.raises(DefinitionError, match="has version 9"):
        ResumeToken.decode(text)
