"""A recogniser of whole utterances that is deployed at Azure OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bargein.nodes.services import Query
from bargein.nodes.vendors.openai.transcription import TranscriptionService

from ._address import azure_deployment

if TYPE_CHECKING:
    import httpx2

__all__ = ["AzureTranscription"]


class AzureTranscription(TranscriptionService):
    """A ``SpeechToText`` of a deployment of Whisper or its successors."""

    def __init__(
        self,
        deployment: str,
        *,
        api_key: str | None = None,
        language: str | None = None,
        hint: str = "",
        options: Mapping[str, Any] | None = None,
        endpoint: str | None = None,
        api_version: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Query | None = None,
        limit_s: float = 8.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Configure the deployment; nothing connects yet.

        Args:
            deployment: The name of the deployment.
            api_key: The resource's key; ``None`` reads AZURE_OPENAI_API_KEY.
            language: The callers' language, as an ISO 639-1 code; ``None`` lets the model detect
                it.
            hint: Text that might precede the utterance; see `TranscriptionService`.
            options: Further fields of each request; see `TranscriptionService`.
            endpoint: The resource's address; ``None`` reads AZURE_OPENAI_ENDPOINT.
            api_version: A dated version of the API; ``None`` for the v1 API.
            headers: Further headers of each request; see `AzureChat`.
            query: Further parameters of each address, which override ours.
            limit_s: How long an attempt may take, in seconds, above 0.
            transport: Carries the requests instead of the network; ``None`` uses the network.

        Raises:
            SpeechExtraError: httpx2 is not installed (extra ``openai``).
            TypeError: A text is not a string, or `options`, `headers` or `query` is no mapping.
            ValueError: There is no deployment, endpoint or key, or a request cannot carry one.
        """
        owner = type(self).__name__
        at = azure_deployment(owner, deployment, api_key, endpoint, api_version, headers, query)
        super().__init__(
            at.name,
            base_url=at.base_url,
            language=language,
            hint=hint,
            options=options,
            headers=at.headers,
            query=at.query,
            limit_s=limit_s,
            transport=transport,
        )
