"""A recogniser of whole utterances that is deployed at Azure OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from bargein.nodes.vendors.openai.transcription import TranscriptionService

from ._address import AzureArguments, azure_deployment

__all__ = ["AzureTranscription"]


class AzureTranscription(TranscriptionService):
    """A ``Recogniser`` of a deployment of Whisper or its successors."""

    def __init__(
        self,
        deployment: str,
        *,
        api_key: str | None = None,
        language: str | None = None,
        hint: str = "",
        options: Mapping[str, Any] | None = None,
        limit_s: float = 8.0,
        **resource: Unpack[AzureArguments],
    ) -> None:
        """Configure the deployment; nothing connects yet.

        Args:
            deployment: The name of the deployment.
            api_key: The resource's key; ``None`` reads AZURE_OPENAI_API_KEY.
            language: The callers' language, as an ISO 639-1 code; ``None`` lets the model detect
                it.
            hint: Text that might precede the utterance; see `TranscriptionService`.
            options: Further fields of each request; see `TranscriptionService`.
            limit_s: How long an attempt may take, in seconds, above 0.
            resource: As `AzureArguments` says; without endpoint= it reads AZURE_OPENAI_ENDPOINT.

        Raises:
            SpeechExtraError: httpx2 is not installed (extra ``openai``).
            TypeError: A text is not a string, or `options`, `headers` or `query` is no mapping.
            ValueError: There is no deployment, endpoint or key, or a request cannot carry one.
        """
        at = azure_deployment(type(self).__name__, deployment, api_key, resource)
        super().__init__(
            deployment, language=language, hint=hint, options=options, limit_s=limit_s, **at
        )
