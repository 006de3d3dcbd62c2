"""Where a deployment of Azure OpenAI is, and how requests to it are authorised.

By the class ``AzureOpenAI`` of OpenAI's SDK 3.54 and Azure's public documentation: the v1 API has
one address for all deployments, which are named as models; dated versions have one for each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from bargein.bridge.validation.arguments import check_instance
from bargein.nodes.services import Query, checked_base_url, checked_query, with_key

VENDOR = "Azure OpenAI"
VARIABLE = "AZURE_OPENAI_API_KEY"
ENDPOINT = "AZURE_OPENAI_ENDPOINT"


@dataclass(frozen=True, slots=True)
class AzureDeployment:
    """One deployment, with what each request to it carries."""

    name: str
    base_url: str
    """What ``/chat/completions`` and the like are appended to."""
    headers: Mapping[str, str] = field(repr=False)
    """The user's headers, with the key."""
    query: Query = field(repr=False)
    """The user's parameters, with the version of the API."""


def azure_deployment(
    owner: str,
    deployment: str,
    api_key: str | None,
    endpoint: str | None,
    api_version: str | None,
    headers: Mapping[str, str] | None,
    query: Query | None,
) -> AzureDeployment:
    """Return where a deployment is.

    Args:
        owner: The class that asks, for errors.
        deployment: The name of the deployment.
        api_key: The resource's key; ``None`` reads AZURE_OPENAI_API_KEY.
        endpoint: The resource's address; ``None`` reads AZURE_OPENAI_ENDPOINT.
        api_version: A dated version of the API; ``None`` for the v1 API.
        headers: The user's headers; ``authorization`` or ``api-key`` among them replaces the key.
        query: The user's parameters of each address.

    Raises:
        TypeError: `deployment` or another text is not a string.
        ValueError: There is no deployment, endpoint or key, or a request cannot carry one.
    """
    check_instance(f"{owner}(deployment)", deployment, str, required=True)
    check_instance(f"{owner}(api_version=)", api_version, str)
    if not deployment:
        raise ValueError(f"{owner}() names no deployment")
    given = os.environ.get(ENDPOINT, "") if endpoint is None else endpoint
    if not given:
        raise ValueError(f"{owner} requires an address: pass endpoint= or set {ENDPOINT}")
    resource = checked_base_url(given, f"endpoint= or {ENDPOINT}")
    resource = resource.removesuffix("/v1").removesuffix("/openai")
    path = "v1" if api_version is None else f"deployments/{quote(deployment, safe='')}"
    version = {} if api_version is None else {"api-version": api_version}
    return AzureDeployment(
        deployment,
        f"{resource}/openai/{path}",
        with_key(VENDOR, api_key, VARIABLE, "api-key", headers=headers),
        {**version, **checked_query(query)},
    )
