"""What ears, voices and models of vendors share: sessions, keys, errors and retries.

Use it to write a provider of your own; ``open_session()`` keeps a WebSocket to a vendor open.
"""

from .nodes.vendors import UNREADABLE as UNREADABLE
from .nodes.vendors import Backoff as Backoff
from .nodes.vendors import Credential as Credential
from .nodes.vendors import ErrorTable as ErrorTable
from .nodes.vendors import HttpResponse as HttpResponse
from .nodes.vendors import HttpService as HttpService
from .nodes.vendors import Meaning as Meaning
from .nodes.vendors import Query as Query
from .nodes.vendors import SessionLimits as SessionLimits
from .nodes.vendors import SessionReopened as SessionReopened
from .nodes.vendors import SharedResource as SharedResource
from .nodes.vendors import VendorAddress as VendorAddress
from .nodes.vendors import VendorError as VendorError
from .nodes.vendors import VendorSession as VendorSession
from .nodes.vendors import WholeCharacters as WholeCharacters
from .nodes.vendors import checked_base_url as checked_base_url
from .nodes.vendors import checked_headers as checked_headers
from .nodes.vendors import checked_options as checked_options
from .nodes.vendors import checked_query as checked_query
from .nodes.vendors import count_of as count_of
from .nodes.vendors import endpoint as endpoint
from .nodes.vendors import error_in_body as error_in_body
from .nodes.vendors import http_errors as http_errors
from .nodes.vendors import in_time_order as in_time_order
from .nodes.vendors import lowest_probability as lowest_probability
from .nodes.vendors import number_of as number_of
from .nodes.vendors import object_of as object_of
from .nodes.vendors import objects_of as objects_of
from .nodes.vendors import open_session as open_session
from .nodes.vendors import parse_json as parse_json
from .nodes.vendors import probability as probability
from .nodes.vendors import query_string as query_string
from .nodes.vendors import retry_after_s as retry_after_s
from .nodes.vendors import text_of as text_of
from .nodes.vendors import timed_words as timed_words
from .nodes.vendors import with_key as with_key
from .nodes.vendors import without_secrets as without_secrets
from .nodes.vendors.anthropic.errors import ANTHROPIC_ERRORS as ANTHROPIC_ERRORS
from .nodes.vendors.assemblyai.errors import ASSEMBLYAI_ERRORS as ASSEMBLYAI_ERRORS
from .nodes.vendors.cartesia.errors import CARTESIA_ERRORS as CARTESIA_ERRORS
from .nodes.vendors.deepgram.errors import DEEPGRAM_ERRORS as DEEPGRAM_ERRORS
from .nodes.vendors.elevenlabs.errors import ELEVENLABS_ERRORS as ELEVENLABS_ERRORS
from .nodes.vendors.gemini.errors import GEMINI_ERRORS as GEMINI_ERRORS
from .nodes.vendors.openai.errors import OPENAI_ERRORS as OPENAI_ERRORS

__all__ = [
    "ANTHROPIC_ERRORS",
    "ASSEMBLYAI_ERRORS",
    "Backoff",
    "CARTESIA_ERRORS",
    "Credential",
    "DEEPGRAM_ERRORS",
    "ELEVENLABS_ERRORS",
    "ErrorTable",
    "GEMINI_ERRORS",
    "HttpResponse",
    "HttpService",
    "Meaning",
    "OPENAI_ERRORS",
    "Query",
    "SessionLimits",
    "SessionReopened",
    "SharedResource",
    "UNREADABLE",
    "VendorAddress",
    "VendorError",
    "VendorSession",
    "WholeCharacters",
    "checked_base_url",
    "checked_headers",
    "checked_options",
    "checked_query",
    "count_of",
    "endpoint",
    "error_in_body",
    "http_errors",
    "in_time_order",
    "lowest_probability",
    "number_of",
    "object_of",
    "objects_of",
    "open_session",
    "parse_json",
    "probability",
    "query_string",
    "retry_after_s",
    "text_of",
    "timed_words",
    "with_key",
    "without_secrets",
]
