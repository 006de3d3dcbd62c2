"""A voice that is deployed at Azure OpenAI."""

from __future__ import annotations

from typing import Unpack

from bargein.nodes.vendors.openai.voice import OpenAIVoice

from ._address import AzureArguments, azure_deployment

__all__ = ["AzureVoice"]


class AzureVoice(OpenAIVoice):
    """Speaks with a deployment of a voice model, clause by clause; open it before use."""

    def __init__(
        self,
        deployment: str,
        voice: str = "marin",
        *,
        api_key: str | None = None,
        instructions: str | None = None,
        speed: float | None = None,
        **resource: Unpack[AzureArguments],
    ) -> None:
        """Configure the deployment; nothing connects yet.

        Args:
            deployment: The name of the deployment.
            voice: The vendor's name of a voice.
            api_key: The resource's key; ``None`` reads AZURE_OPENAI_API_KEY.
            instructions: How to speak, in words; not for ``tts-1``.
            speed: Factor on the usual speed, 0.25 to 4; ``None`` for 1.
            resource: As `AzureArguments` says; without endpoint= it reads AZURE_OPENAI_ENDPOINT.

        Raises:
            SpeechExtraError: httpx2 is not installed (extra ``openai``).
            TypeError: A text is not a string, or `headers` or `query` is no mapping.
            ValueError: There is no deployment, endpoint or key, a request cannot carry one, or
                `speed` is out of bounds.
        """
        at = azure_deployment(type(self).__name__, deployment, api_key, resource)
        super().__init__(voice, model=deployment, instructions=instructions, speed=speed, **at)
