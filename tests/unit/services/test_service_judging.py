"""What an answer is: each way to be right, broken, refused, passing or a reason to stop."""

import base64
import io
import json
import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from bindbench.config.services import Services
from bindbench.services.calling import backoff_s
from bindbench.services.judging import check_image, check_text, judge, seconds_of
from fake_services import chat_answer, gemini_answer, image_answer, png
from hypothesis import given
from hypothesis import strategies as st
from service_requests import SCHEMA, gemini_picture, pictures, question

PICTURE, QUESTION, GEMINI = pictures(1)[0], question(), gemini_picture()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def of_image(fault: str | None = None):
    answer = image_answer({**PICTURE.body, "model": "m"}, {"fault": fault})
    return judge(PICTURE, 200, json.dumps(answer).encode())


def of_chat(fault: str | None = None):
    answer = chat_answer({**QUESTION.body, "model": "m"}, {"fault": fault})
    return judge(QUESTION, 200, json.dumps(answer).encode())


def of_gemini(fault: str | None = None):
    request = {"contents": [], "generationConfig": {"responseModalities": ["IMAGE"]}}
    return judge(GEMINI, 200, json.dumps(gemini_answer(request, {"fault": fault})).encode())


def test_good_answers_give_payload_and_tokens():
    assert of_image().verdict == of_chat().verdict == of_gemini().verdict == "answer"
    assert of_image().content_type == of_gemini().content_type == "image/png"
    assert json.loads(of_chat().payload) == {"verdict": "accepted", "reason": "text"}
    assert of_image().tokens == {"input_text": 12, "input_image": 0, "output_text": 0, "output_image": 1000}
    assert of_chat().tokens == {"input_text": 20, "input_image": 0, "output_text": 30, "output_image": 0}
    # Thoughts are received text.
    assert of_gemini().tokens == {"input_text": 20, "input_image": 0, "output_text": 5, "output_image": 1120}


@pytest.mark.parametrize(
    ("judgement", "reason"),
    [
        (of_image("half_base64"), "not whole"),
        (of_image("wrong_size"), "32x64, not 64x64"),
        (of_image("not_image"), "not whole"),
        (of_image("no_image"), "form of its kind"),
        (of_chat("wrong_schema"), "does not fit the schema"),
        (of_chat("not_json"), "not JSON"),
        (of_chat("length"), "cut at the token limit"),
        (of_gemini("no_image"), "holds no image"),
        (of_gemini("half_base64"), "not whole"),
        (judge(PICTURE, 200, b'{"data": ['), "not a JSON object"),
        (judge(PICTURE, 200, b"[]"), "not a JSON object"),
        (judge(PICTURE, 200, b""), "not a JSON object"),
        (judge(PICTURE, 200, b'{"data": [{"url": "http://x"}]}'), "holds no image"),
        (judge(QUESTION, 200, b'{"choices": []}'), "form of its kind"),
    ],
)
def test_broken_payloads(judgement, reason):
    import re

    assert judgement.verdict == "broken"
    assert re.search(reason, judgement.reason), judgement.reason


def error(code: str, message: str = "sorry", status: int = 400, request=PICTURE, kind: str = "invalid_request_error"):
    body = {"error": {"code": code, "message": message, "type": kind}}
    return judge(request, status, json.dumps(body).encode())


@pytest.mark.parametrize(
    "judgement",
    [
        error("moderation_blocked"),
        error("content_policy_violation"),
        error("image_content_policy_violation"),
        error("", "Your request was rejected by our safety system"),
        of_chat("refusal"),
        of_gemini("refusal"),
        of_gemini("withheld"),
    ],
)
def test_moderation_is_final(judgement):
    assert judgement.verdict == "refused"
    assert "moderation" in judgement.reason or "refuses" in judgement.reason


def test_other_invalid_requests_are_final_too():
    assert error("invalid_value", "size: too large").verdict == "refused"
    assert error("x", status=413).verdict == error("x", status=422).verdict == "refused"
    assert "invalid_value: size: too large" in error("invalid_value", "size: too large").reason


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_passing_errors(status):
    assert error("rate_limit_exceeded", status=status).verdict == "passing"


def test_a_gateway_s_page_is_a_passing_error():
    judgement = judge(PICTURE, 502, b"<html>Bad Gateway</html>")
    assert judgement.verdict == "passing" and "Bad Gateway" in judgement.reason


@pytest.mark.parametrize(
    "judgement",
    [
        error("insufficient_quota", status=429),
        error("rate", status=429, kind="insufficient_quota"),
        error("billing_hard_limit_reached"),
        error("invalid_api_key", status=401),
        error("x", status=403),
        error("model_not_found", status=404),
    ],
)
def test_what_no_request_would_survive_stops_the_run(judgement):
    assert judgement.verdict == "stop"


def test_gemini_s_wrong_key_comes_as_400_and_stops_too():
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    body = {"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT", "details": details}}
    assert judge(GEMINI, 400, json.dumps(body).encode()).verdict == "stop"


@given(data=st.data())
def test_no_bit_of_an_image_may_be_wrong(data):
    picture = bytearray(png(64, 64, 7, padding=500))
    position = data.draw(st.integers(0, len(picture) - 1))
    picture[position] ^= 1 << data.draw(st.integers(0, 7))
    assert check_image(encoded(bytes(picture)), "64x64").verdict == "broken"


@given(cut=st.integers(1, 700))
def test_no_byte_of_an_image_may_be_missing(cut):
    picture = png(64, 64, 7, padding=500)
    assert check_image(encoded(picture[:-cut]), "64x64").verdict == "broken"


def test_every_pixel_of_a_format_without_checksums_is_decoded():
    from PIL import Image

    file = io.BytesIO()
    Image.effect_noise((64, 64), 80).save(file, "JPEG")
    assert check_image(encoded(file.getvalue()), "64x64").content_type == "image/jpeg"
    assert check_image(encoded(file.getvalue()[:-300]), "64x64").verdict == "broken"


def test_an_image_may_come_as_url_safe_base64():
    data = png(64, 64, 0xFFEEDD, padding=300)
    assert check_image(base64.urlsafe_b64encode(data).decode(), None).payload == data


def test_a_picture_that_claims_to_be_huge_is_not_decoded():
    data = bytearray(png(8, 8, 1))
    data[16:24] = (60000).to_bytes(4, "big") * 2
    assert check_image(encoded(bytes(data)), None).verdict == "broken"


def test_size_auto_is_not_compared():
    assert check_image(encoded(png(8, 16, 1)), "auto").verdict == "answer"


def test_json_is_kept_in_one_spelling():
    one = check_text('{"reason": "a", "verdict": "accepted"}', SCHEMA, True)
    assert one.payload == check_text('{"verdict":"accepted",\n"reason":"a"}', SCHEMA, True).payload


NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("1.5", 1.5),
        ("-3", 0),
        ("Mon, 30 Nov 2026 12:00:30 GMT", 30),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header, seconds):
    assert seconds_of(header, NOW) == seconds


def test_backoff_doubles_is_jittered_and_has_a_limit():
    settings = Services(backoff_s=1, backoff_limit_s=10)
    random.seed(0)
    waits = [[backoff_s(retry, settings) for _ in range(400)] for retry in range(7)]
    for retry, row in enumerate(waits):
        limit = min(10, 2**retry)
        assert 0 <= min(row) < 0.2 * limit and 0.8 * limit < max(row) <= limit
    assert backoff_s(10_000, settings) <= 10


HALF = "\\ud800"  # one half of a surrogate pair, as JSON may spell it
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "content",
    [f'"{HALF}"', json.dumps(DEEP), f'"{{\\"verdict\\": \\"{HALF * 2}\\"}}"'],
    ids=["half a pair", "deep nesting", "half a pair in JSON"],
)
@pytest.mark.parametrize("schema", [True, False])
def test_a_paid_answer_that_cannot_be_written_down_is_broken_and_not_lost(content, schema):
    raw = f'{{"choices": [{{"message": {{"role": "assistant", "content": {content}}}, "finish_reason": "stop"}}]}}'
    request = QUESTION if schema else replace(QUESTION, body={"messages": QUESTION.body["messages"]})
    judgement = judge(request, 200, raw.encode())
    assert judgement.verdict == "broken" or (judgement.verdict == "answer" and content == json.dumps(DEEP))
    judgement.reason.encode()


def test_bodies_of_any_depth_and_errors_with_half_a_pair_are_judged():
    assert judge(QUESTION, 200, DEEP.encode()).verdict == "broken"
    judgement = judge(QUESTION, 400, f'{{"error": {{"message": "bad {HALF}", "code": "x"}}}}'.encode())
    assert judgement.verdict == "refused" and judgement.reason.encode()
    assert judge(QUESTION, 500, DEEP.encode()).verdict == "passing"
