"""The optimizer's move of one step, left out on the device where the step is bad."""

from __future__ import annotations

import torch
from torch import Tensor

from engines.training.precision import Precision


class Update:
    """Lets any optimizer move, or stay where it is, without waiting for the device.

    A fused one looks at `found_inf` itself. Of another one weights and state are put back after a bad step, except what
    it counts on the host: that has counted the step.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, precision: Precision) -> None:
        self._optimizer, self._scaler = optimizer, precision.scaler
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._looks_itself = bool(getattr(optimizer, "_step_supports_amp_scaling", False))

    def __call__(self, skipped: Tensor) -> None:
        """Move unless `skipped`, a scalar on the device, is 1."""
        if not self._looks_itself:
            self._move_or_stay(skipped.bool())
        else:
            # not through the scaler's step, which knows gradients alone: a norm or a loss may overflow without them
            self._optimizer.found_inf, self._optimizer.grad_scale = skipped, None  # type: ignore[attr-defined]
            self._optimizer.step()
        self._scaler.update()
        for parameter in self._parameters:  # as zero_grad does, without the time it takes to note itself for profilers
            parameter.grad = None

    @torch.no_grad()
    def _move_or_stay(self, bad: Tensor) -> None:
        state = self._optimizer.state
        moved = [p for group in self._optimizer.param_groups for p in group["params"] if p.grad is not None]
        known = set(state)
        kept = [value for values in state.values() for value in values.values() if isinstance(value, Tensor)]
        before = [(tensor, tensor.clone()) for tensor in [*moved, *kept] if tensor.device == bad.device]
        self._optimizer.step()
        for tensor, value in before:
            tensor.copy_(torch.where(bad, value, tensor))
        if len(state) > len(known) and bool(bad):  # waits, but only where a parameter is trained for the first time
            for parameter in state.keys() - known:
                del state[parameter]
