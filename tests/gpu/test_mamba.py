"""The kernels of mamba-ssm beside the own scan, where the package is installed; without it these are skipped."""

from __future__ import annotations

import pytest
import torch

from projects.melee.mamba import Mamba2, use_kernels
from tests.gpu.conftest import ON_GPU, needs_driver

pytestmark = [*ON_GPU, needs_driver]
HALF = {torch.float32: 1e-3, torch.bfloat16: 5e-2}
"""How far outputs and gradients may be apart, by the precision of the layer: the kernels multiply in TF32."""


@pytest.mark.parametrize("time", [10, 60, 257])
@pytest.mark.parametrize("dtype", list(HALF))
def test_the_kernels_give_what_the_own_scan_gives(time: int, dtype: torch.dtype) -> None:
    pytest.importorskip("mamba_ssm", reason="mamba-ssm is not installed")
    torch.manual_seed(0)
    device = torch.device("cuda")
    own, fast = Mamba2(256).to(device), Mamba2(256).to(device)
    fast.load_state_dict(own.state_dict())
    assert use_kernels(fast, device) == "Mamba-2 runs on the kernels of mamba-ssm"
    x = torch.randn(4, time, 256, device=device)
    found = []
    for layer in (own, fast):
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            y, state = layer(x)
        grads = torch.autograd.grad(y.float().square().mean(), list(layer.parameters()))
        found.append([y.float(), state.ssm, *grads])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(theirs, ours, atol=HALF[dtype], rtol=HALF[dtype])


def test_the_layer_of_mamba_ssm_takes_our_weights() -> None:
    package = pytest.importorskip("mamba_ssm", reason="mamba-ssm is not installed")
    torch.manual_seed(0)
    ours = Mamba2(256, d_state=64, headdim=64).cuda()
    theirs = package.Mamba2(256, d_state=64, headdim=64, use_mem_eff_path=False).cuda()
    theirs.load_state_dict(ours.state_dict())  # strict: every name and shape is shared
    x = torch.randn(2, 60, 256, device="cuda")
    torch.testing.assert_close(theirs(x), ours(x)[0], atol=1e-3, rtol=1e-3)
