"""Where a deployment of Azure OpenAI is, and how requests to it are authorised.

By the class ``AzureOpenAI`` of OpenAI's SDK 3.54 and Azure's public documentation: the v1 API has
one address for all deployments, which are named as models; dated versions have one for each.
"""

from __future__ import annotations

import os
from urllib.parse import quote

from bargein.bridge.validation.arguments import check_instance
from bargein.nodes.services import (
    ServiceArguments,
    check_arguments,
    checked_base_url,
    checked_query,
    with_key,
)

VENDOR = "Azure OpenAI"
VARIABLE = "AZURE_OPENAI_API_KEY"
ENDPOINT = "AZURE_OPENAI_ENDPOINT"


class AzureArguments(ServiceArguments, total=False):
    """What each class of Azure's takes beside its own."""

    endpoint: str | None
    """The resource's address, such as ``https://mine.openai.azure.com``; ``None`` reads
    AZURE_OPENAI_ENDPOINT."""
    api_version: str | None
    """A dated version of the API, such as "2024-10-21", which has an address for each deployment;
    ``None`` for the v1 API, which needs none."""


class AzureDeployment(ServiceArguments):
    """Where a deployment is, with what each request to it carries."""

    base_url: str
    """What ``/chat/completions`` and the like are appended to."""


def azure_deployment(
    owner: str, deployment: str, api_key: str | None, resource: AzureArguments
) -> AzureDeployment:
    """Return where a deployment is.

    Args:
        owner: The class that asks, for errors.
        deployment: The name of the deployment.
        api_key: The resource's key; ``None`` reads AZURE_OPENAI_API_KEY.
        resource: What the user gave beside.  A header ``authorization`` (a token of Entra ID) or
            ``api-key`` replaces the key.

    Raises:
        TypeError: `deployment` or another text is not a string, or there is another argument.
        ValueError: There is no deployment, endpoint or key, or a request cannot carry one.
    """
    check_arguments(owner, resource, AzureArguments, address="endpoint")
    version, endpoint = resource.get("api_version"), resource.get("endpoint")
    check_instance(f"{owner}(deployment)", deployment, str, required=True)
    check_instance(f"{owner}(api_version=)", version, str)
    if not deployment:
        raise ValueError(f"{owner}() names no deployment")
    given = os.environ.get(ENDPOINT, "") if endpoint is None else endpoint
    if not given:
        raise ValueError(f"{owner} requires an address: pass endpoint= or set {ENDPOINT}")
    address = checked_base_url(given, f"endpoint= or {ENDPOINT}")
    address = address.removesuffix("/v1").removesuffix("/openai")
    path = "v1" if version is None else f"deployments/{quote(deployment, safe='')}"
    dated = {} if version is None else {"api-version": version}
    return AzureDeployment(
        base_url=f"{address}/openai/{path}",
        headers=with_key(VENDOR, api_key, VARIABLE, "api-key", headers=resource.get("headers")),
        query={**dated, **checked_query(resource.get("query"))},
        transport=resource.get("transport"),
    )
