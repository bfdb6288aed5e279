"""What the driver's numbers and torch's mean of each other, and that a run on the CPU claims nothing of a card."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from engines.host.facts import device_name
from engines.training.precision import choose_device
from tests.gpu.conftest import ON_GPU, needs_driver, read_gpu

pytestmark = [pytest.mark.gpu, *ON_GPU, needs_driver]


def test_a_card_named_by_its_uuid_is_that_card() -> None:
    import pynvml

    pynvml.nvmlInit()
    uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))
    assert uuid == f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    for visible in (uuid, uuid[:12], "0"):
        assert device_name("cuda:0", {"CUDA_VISIBLE_DEVICES": visible}) == "cuda:0"
        assert device_name("auto", {"CUDA_VISIBLE_DEVICES": visible}) == "cuda:0"
    assert device_name("auto", {}) == "cuda:0"


def test_auto_is_the_card_the_driver_names() -> None:
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda", 0)
    assert torch.cuda.get_device_name(0) == read_gpu().name


def test_a_card_there_is_not_is_a_sentence() -> None:
    code = "from engines.training.precision import choose_device; choose_device('cuda:7')"
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    told = answer.stderr.strip().splitlines()[-1]
    assert "launch.device 'cuda:7' cannot be used here" in answer.stderr, told
    assert "use auto, cpu or cuda:0" in answer.stderr


def test_a_run_on_the_cpu_claims_nothing_of_a_card() -> None:
    code = (
        "import torch; from engines.training.precision import *;"
        "choose_device('cpu'); seed_everything(1); restore_random_state(random_state());"
        "print(torch.cuda.is_initialized())"
    )
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
