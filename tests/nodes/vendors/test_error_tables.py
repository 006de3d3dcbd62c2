"""What the errors of vendors mean, held against the codes of their published types."""

from __future__ import annotations

import json

import pytest

from bargein.vendors import (
    ANTHROPIC_ERRORS,
    ASSEMBLYAI_ERRORS,
    CARTESIA_ERRORS,
    DEEPGRAM_ERRORS,
    ELEVENLABS_ERRORS,
    GEMINI_ERRORS,
    OPENAI_ERRORS,
    ErrorTable,
    Meaning,
    VendorError,
)

PUBLISHED: dict[str, tuple[ErrorTable, dict[Meaning, str]]] = {
    # elevenlabs 2.78: `message_type` of the types `Scribe...ErrorPayload`
    "ElevenLabs' ear": (
        ELEVENLABS_ERRORS,
        {
            "passing": "chunk_size_exceeded error input_error insufficient_audio_activity "
            "queue_overflow rate_limited resource_exhausted session_time_limit_exceeded "
            "transcriber_error",
            "final": "auth_error unaccepted_terms invalid_request",
            "credit": "quota_exceeded",
            "ignore": "commit_throttled",
        },
    ),
    # googleapis: `google.rpc.Code`, and `google.api.ErrorReason` of a key or an account
    "Gemini": (
        GEMINI_ERRORS,
        {
            "passing": "RESOURCE_EXHAUSTED UNAVAILABLE DEADLINE_EXCEEDED INTERNAL ABORTED "
            "CANCELLED UNKNOWN DATA_LOSS RATE_LIMIT_EXCEEDED",
            "final": "INVALID_ARGUMENT FAILED_PRECONDITION NOT_FOUND OUT_OF_RANGE UNIMPLEMENTED "
            "PERMISSION_DENIED UNAUTHENTICATED API_KEY_INVALID",
            "credit": "BILLING_DISABLED",
        },
    ),
    # assemblyai 1.8: `RealTimeErrorCodes`
    "AssemblyAI": (
        ASSEMBLYAI_ERRORS,
        {
            "passing": "3005 3006 3007 3008 3009 4004 4008 4010 4029 4030 4031 4032 4033 4034 "
            "4100 4101 4102 4103 1013",
            "final": "4000 4001",
            "credit": "4002 4003",
        },
    ),
    # deepgram-sdk 7.17: `SpeakV2ErrorCode`, the docstrings of `ListenV2FatalError`,
    # `SpeakV2Warning` and `ListenV1Error`, and both `ConfigureFailureCode`
    "Deepgram": (
        DEEPGRAM_ERRORS,
        {
            "passing": "MESSAGE-0000 DATA-0000 BIG-0000 NET-0000 NET-0001 NET-0002 NET-0003 "
            "NET-0004 INTERNAL_SERVER_ERROR",
            "final": "DATA-0002",
            "ignore": "SchemaError NO_ACTIVE_SPEECH NO_SYNTHESIZABLE_TEXT SYNTHESIS_RETRYING "
            "PRONUNCIATION_WARNINGS PRONUNCIATION_TOO_LONG PRONUNCIATIONS_LIMIT_EXCEEDED "
            "BREAKS_LIMIT_EXCEEDED BREAK_TOKENS_OUT_OF_RANGE BREAK_TOKENS_WITH_INVALID_INCREMENTS "
            "NO_AUDIO_GENERATED INTERRUPT_IN_PROGRESS INVALID_INTERRUPT_OFFSET SPEED_OUT_OF_RANGE "
            "SPEED_INCREMENT_INVALID SPEED_NOT_SUPPORTED CONTROL_COMBINATION_INVALID "
            "CONFIGURE_KEYTERMS_NOT_SUPPORTED CONFIGURE_KEYTERM_LIMIT_EXCEEDED "
            "CONFIGURE_ALREADY_PENDING CONFIGURE_INTERNAL_ERROR",
        },
    ),
    # anthropic 2.12: `ErrorType`, and the `error_code` of its shared errors
    "Anthropic": (
        ANTHROPIC_ERRORS,
        {
            "passing": "rate_limit_error timeout_error api_error overloaded_error conflict_error "
            "memory_path_conflict_error ramp_limit_exceeded cmek_context_unavailable "
            "cmek_key_unreachable",
            "final": "invalid_request_error authentication_error permission_error not_found_error "
            "memory_precondition_failed_error organization_on_hold cmek_key_disabled "
            "organization_type_not_supported",
            "credit": "billing_error contract_spend_limit_reached enforced_spend_limit_reached "
            "linked_organization_spend_limit_reached linked_organization_billing_unavailable",
        },
    ),
    # openai 3.54: `RealtimeError.type`, `ResponseError.code`
    "OpenAI": (
        OPENAI_ERRORS,
        {
            "passing": "server_error rate_limit_exceeded vector_store_timeout "
            "failed_to_download_image session_expired",
            "final": "invalid_prompt data_residency_mismatch bio_policy "
            "misalignment_policy_violation invalid_image invalid_image_format "
            "invalid_base64_image invalid_image_url image_too_large image_too_small "
            "image_parse_error image_content_policy_violation invalid_image_mode "
            "image_file_too_large unsupported_image_media_type empty_image_file "
            "image_file_not_found invalid_api_key",
            "credit": "insufficient_quota billing_hard_limit_reached",
            "ignore": "invalid_request_error",
        },
    ),
    # cartesia 4.2: its errors bear a `status_code`, as HTTP has it
    "Cartesia": (
        CARTESIA_ERRORS,
        {
            "passing": "internal_error concurrency_limited something_new",
            "final": "unauthorized voice_not_found",
            "credit": "quota_exceeded plan_upgrade_required",
        },
    ),
}


@pytest.mark.parametrize("vendor", PUBLISHED)
def test_each_published_code_of_a_vendor_has_its_meaning(vendor: str) -> None:
    """Every code of the vendors' published types means what the table says, in any spelling."""
    table, meanings = PUBLISHED[vendor]
    for meaning, codes in meanings.items():
        for code in codes.split():
            assert table.meaning(code) == meaning, code
            assert table.meaning(code.upper()) == meaning, code
            error = table.read("failed", code, detail="a text")
            assert (error is None) == (meaning == "ignore"), code
            if error is not None:
                assert (error.meaning, error.retryable) == (meaning, meaning == "passing"), code


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        *((429, "passing"), (500, "passing"), (503, "passing"), (408, "passing"), (400, "passing")),
        *((401, "final"), (403, "final"), (404, "final"), (402, "credit"), (None, "passing")),
        *((1008, "passing"), (1011, "passing")),
    ],
)
def test_a_status_in_a_message_has_its_meaning(status: int | None, meaning: Meaning) -> None:
    """A message with a status that may pass is passing; a wrong key or no credit is not."""
    assert ErrorTable("Any").meaning("new_code", status=status) == meaning


@pytest.mark.parametrize(
    ("body", "status", "meaning", "code"),
    [
        ({"error": {"code": "insufficient_quota", "message": "no"}}, 429, "credit", None),
        ({"error": {"type": "rate_limit", "message": "no"}}, 429, "passing", "rate_limit"),
        ({"detail": {"status": "quota_exceeded", "message": "no"}}, 401, "credit", None),
        ({"detail": "no"}, 401, "final", ""),
        ({"error": {"type": "server_error", "message": "no"}}, 401, "final", "server_error"),
        ({"error": {"code": "rate_limit_exceeded", "message": "no"}}, 403, "final", None),
        ({"err_code": "ASR_PAYMENT_REQUIRED", "err_msg": "no"}, 402, "credit", None),
        (
            [{"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}}],
            503,
            "passing",
            "UNAVAILABLE",
        ),
        ({"error": "Insufficient Funds"}, 400, "credit", ""),
        ({"error": {"type": "invalid_request_error", "message": "no"}}, 400, "final", None),
        ({"error": {"code": 123, "message": {"odd": []}}}, 422, "final", "123"),
        ("not JSON", 500, "passing", ""),
    ],
)
def test_a_refusal_is_read_in_any_shape(
    body: object, status: int, meaning: Meaning, code: str | None
) -> None:
    """The code and the text of a refused request are found in each vendor's shape."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    error = OPENAI_ERRORS.refusal("refused", status, {"retry-after": "2"}, raw)
    assert error.meaning == meaning
    assert error.retry_after_s == 2
    if code is not None:
        assert error.code == code


def test_a_code_says_more_than_its_type() -> None:
    """OpenAI's session goes on after an invalid request, unless its code says otherwise."""
    kind = "invalid_request_error"
    assert OPENAI_ERRORS.read("failed", "session_expired", kind) is not None
    assert OPENAI_ERRORS.meaning("rate_limit_exceeded", kind) == "passing"
    assert OPENAI_ERRORS.read("failed", None, kind) is None
    assert OPENAI_ERRORS.failure("failed", "unknown_parameter", kind).meaning == "final"


def test_an_account_without_credit_is_told_where_to_look() -> None:
    """The error of an account without credit says so, and quotes the vendor only in full."""
    error = OPENAI_ERRORS.read("refused", "insufficient_quota", detail="Jane's card failed")
    assert isinstance(error, VendorError)
    assert "no credit" in error.safe_text
    assert "Jane" not in error.safe_text
    assert "Jane" in str(error)


def test_a_code_that_is_a_sentence_is_kept_out_of_the_safe_text() -> None:
    """A vendor that writes a sentence where a code belongs may quote people."""
    error = OPENAI_ERRORS.read("refused", "Jane said no", detail="Jane said no")
    assert error is not None
    assert "Jane" not in error.safe_text


@pytest.mark.parametrize(
    ("table", "codes", "status", "meaning"),
    [
        (OPENAI_ERRORS, ("invalid_request_error",), None, "final"),  # no session that goes on
        (OPENAI_ERRORS, ("context_length_exceeded", "invalid_request_error"), None, "final"),
        (OPENAI_ERRORS, ("insufficient_quota",), 429, "credit"),
        (OPENAI_ERRORS, (), 400, "final"),
        (OPENAI_ERRORS, (), 409, "passing"),
        (OPENAI_ERRORS, (), 402, "credit"),
        (ANTHROPIC_ERRORS, ("overloaded_error",), 529, "passing"),
        (ANTHROPIC_ERRORS, ("organization_on_hold",), None, "final"),
        (GEMINI_ERRORS, ("RESOURCE_EXHAUSTED",), 429, "passing"),
        (GEMINI_ERRORS, ("BILLING_DISABLED",), 403, "credit"),
    ],
)
def test_an_error_of_a_request_ends_it(table, codes, status, meaning):
    """What a session would ignore ends a request, and a status that refuses it is final."""
    assert table.meaning_of_request(*codes, status=status) == meaning
