"""Using an exported model: python sim_v0_infer.py [FOLDER]. Part of the exported script, its last.

Beside the script lie `sim_v0.json`, `sim_v0.pt` and `example.npz`. It first repeats the example and prints the largest
difference. FOLDER holds a recording: frames (JPEG or PNG, in the order of their names) and `telemetry.csv`, a row per
frame. Each window of F frames gives a line of JSON: labels with their probabilities, and whether high risk is likely
enough for an alarm.
"""

from __future__ import annotations

import argparse
import csv
import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from projects.sim.labels import LABELS, TELEMETRY, ModelError
from projects.sim.network import STATISTICS, SimNetwork, build
from projects.sim.vision import as_input, open_vision

CONFIG, WEIGHTS, EXAMPLE, TABLE = "sim_v0.json", "sim_v0.pt", "example.npz", "telemetry.csv"
SUFFIXES = {".jpg", ".jpeg", ".png"}


def load(folder: Path) -> tuple[SimNetwork, dict[str, Any]]:
    """The model in an export's folder, in eval mode, and its config. Raises `ModelError` where something is missing."""
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_bytes())
        weights: dict[str, Tensor] = torch.load(folder / WEIGHTS, map_location="cpu", weights_only=True)
    except (OSError, ValueError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ModelError(f"{folder}: is no export of SIM, or damaged ({error}); export the run again.") from None
    network = build(config["model"])
    if missing := [name for name in STATISTICS if name not in weights]:
        raise ModelError(
            f"{folder / WEIGHTS}: lacks {', '.join(missing)}, so telemetry has no statistics; export again."
        )
    own = {name for name in network.state_dict() if not name.startswith(("llm.", "vision."))}
    try:
        if own != set(weights):
            raise RuntimeError(f"other parts: {', '.join(sorted(own ^ set(weights))[:3])}")
        network.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        said = " ".join(str(error).split())[:160]
        raise ModelError(f"{folder / WEIGHTS}: does not fit {CONFIG} ({said}); export the run again.") from None
    return network.eval(), config


def largest_difference(network: SimNetwork, folder: Path) -> float:
    """Between the logits that the training engine gave on the example's windows and those of `network`."""
    with np.load(folder / EXAMPLE, allow_pickle=False) as content:
        arrays = {name: torch.from_numpy(content[name]) for name in content.files}
    with torch.inference_mode():
        output = network(arrays)
    return max(float((output[f"{task}_logits"] - arrays[f"{task}_logits"]).abs().max()) for task in LABELS)


def windows(folder: Path, network: SimNetwork, config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Each window of a recording, by the name of its last frame, as a batch of one."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    size = config["model"]["frames"]
    if len(files) < size:
        raise ModelError(f"{folder}: holds {len(files)} frames (JPEG or PNG), expected at least {size}.")
    telemetry = read_telemetry(folder / TABLE, len(files), network.telemetry_mean)
    if not config["model"]["dv"]:
        for last in range(size - 1, len(files)):
            yield files[last].name, {"telemetry": telemetry[last : last + 1]}
        return
    if not config["sees_frames"]:
        raise ModelError("this model was trained on features that the user made; give it those as vis_feats.")
    encoder = open_vision(config["model"]["vision"])
    with torch.inference_mode():
        features = torch.cat([encoder(as_input(_pixels(path))[None]) for path in files])
    for last in range(size - 1, len(files)):
        window = features[None, last - size + 1 : last + 1]
        yield files[last].name, {"telemetry": telemetry[last : last + 1], "vis_feats": window}


def _pixels(path: Path) -> Any:
    from PIL import Image

    try:
        return np.array(Image.open(path, formats=("JPEG", "PNG")).convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        raise ModelError(f"{path}: cannot be read as a JPEG or PNG ({error}).") from None


def read_telemetry(path: Path, rows: int, mean: Tensor) -> Tensor:
    """Of every frame: (rows, 8); a column that the table lacks is at its mean of the training data."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        if len(table) != rows:
            raise ValueError(f"it holds {len(table)} rows for {rows} frames")
        values = mean.repeat(rows, 1)
        for place, name in enumerate(TELEMETRY):
            if table and name in table[0]:
                values[:, place] = torch.tensor([float(row[name]) for row in table])
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ModelError(
            f"{path}: cannot be read ({error}); expected a header among {','.join(TELEMETRY)} and a row for each of "
            f"{rows} frames."
        ) from None
    return values


def main(arguments: list[str] | None = None) -> int:
    """What the script does; 0, or 2 after a sentence on the standard error."""
    parser = argparse.ArgumentParser(description="Risk, reason and action of a rover's recording.")
    parser.add_argument("recording", nargs="?", type=Path, help="folder of frames with telemetry.csv")
    parser.add_argument(
        "--export", type=Path, default=Path(sys.argv[0]).resolve().parent, help="folder with sim_v0.json"
    )
    given = parser.parse_args(arguments)
    try:
        network, config = load(given.export)
        print(f"largest difference to the training engine: {largest_difference(network, given.export):.2e}")
        threshold = config["thresholds"]["risk_high"]
        for name, batch in windows(given.recording, network, config) if given.recording else ():
            said = network.predict_json({**batch, "sample_id": [name]})[0]
            alarm = said["risk"]["probabilities"]["high"] >= threshold
            print(json.dumps({**said, "alarm": alarm}))
    except (ModelError, OSError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
