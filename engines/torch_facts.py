"""`python -P -m engines.torch_facts`: prints what torch and mamba-ssm are here and can do, as one JSON object.

A process of its own, since the cockpit imports no torch, and since a broken driver may end whoever asks it.
"""

from __future__ import annotations

import importlib.metadata
from typing import Any

import msgspec


def torch_facts() -> dict[str, Any]:
    """`version`, `cuda` (that torch was built for, None for a CPU build), `available`, `error`, `cards`, `mamba`.

    A card has `name`, `capability` such as `9.0`, and `supported`: whether this build has code for it.
    """
    import torch

    facts: dict[str, Any] = {"version": str(torch.__version__), "cuda": torch.version.cuda, "error": "", "cards": []}
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        facts["cards"] = [_card(torch.cuda.get_device_properties(k)) for k in range(torch.cuda.device_count())]
    except Exception as error:  # a driver may fail in any way
        facts["error"] = str(error).split("\n")[0][:300]
    facts["available"] = torch.cuda.is_available()
    return {**facts, "mamba": mamba_facts() if facts["available"] else {"version": "", "error": ""}}


def _card(properties: Any) -> dict[str, Any]:
    import torch

    capability = (properties.major, properties.minor)
    supported = any(runs_on(code, capability) for code in torch.cuda.get_arch_list())
    return {"name": properties.name, "capability": "{}.{}".format(*capability), "supported": supported}


def runs_on(code: str, capability: tuple[int, int]) -> bool:
    """Whether what was compiled for `code`, as `sm_90` or `compute_120`, runs on a card.

    Machine code (`sm_`) runs on later cards of the same major number, the driver compiles the other kind for all later
    ones (CUDA C++ Programming Guide, 5.8).
    """
    kind, _, digits = code.rstrip("af").partition("_")
    if not digits.isdecimal() or len(digits) < 2:
        return False
    major, minor = int(digits[:-1]), int(digits[-1])
    if kind == "compute":
        return (major, minor) <= capability
    return major == capability[0] and minor <= capability[1]


def mamba_facts() -> dict[str, str]:
    """`version` of mamba-ssm, empty where it is not installed, and the `error` of its import."""
    try:
        version = importlib.metadata.version("mamba-ssm")
    except importlib.metadata.PackageNotFoundError:
        return {"version": "", "error": ""}
    try:
        import mamba_ssm  # noqa: F401  its compiled part fails where torch was replaced after it was built
    except Exception as error:
        return {"version": version, "error": str(error).split("\n")[0][:300]}
    return {"version": version, "error": ""}


if __name__ == "__main__":
    print(msgspec.json.encode(torch_facts()).decode())
