"""League of Legends games with one row a frame (NA1_….npz): their state as latents, what happens as features.

Where the player goes is read from its order (`mv_hx`, `mv_hy`, on the screen; `wp_x`, `wp_y`, in the world) where there
is one, else from the change of its position. In files whose `mv_hx` is where the player is half a second later, it is
no order but the future, and is not read.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.basics import npz
from engines.basics.errors import DataError
from projects.agent.features import Features
from projects.agent.layout import ABILITIES, MOST_GOLD, NONE, SLICES, UNKNOWN
from projects.agent.recordings import FEATURES, FILE, LATENTS

Floats = NDArray[np.float64]
NEEDED = ("gt", "hp", "hp_max", "gold_total", "level", "cw_x", "cw_y", "cs_x", "cs_y")
OPTIONAL = ("mv_hx", "mv_hy", "mv_speed", "wp_x", "wp_y", "opp_hp", "opp_hp_max", "opp_screen_ok")
CHANNELS = (
    "x", "y", "step x", "step y", "hp", "hp change", "hp most", "alive", "level", "gold gained", "gold", "opponent hp",
    "opponent known", "opponent on the screen",
)  # fmt: skip
"""What a latent (14, 1, 1) holds, each within a few units of 0."""
SOURCES = ("order on the screen", "order in the world", "change of position", "none", "not known")
MAP = 15_000.0
"""Units from one end of the map to the other."""
TELEPORT = 200.0
"""Units in a frame, 4000 a second, that nobody walks: a respawn, a recall, a flash."""
TILT = 56.0
"""Degrees that the camera looks down, where the file does not say: what lies ahead is shortened by its sine."""
LATER = 10
"""Frames ahead at which `mv_hx`, `mv_hy` and `mv_speed` say where the player is, in files where they are no order."""


@dataclass(frozen=True)
class Game:
    """A game. features: of n frames, those of the file whose state is known. step: (n, 2) in units. latents:
    (n, 14, 1, 1). sources: of where the movements were found, the share of the frames. notes: for the user."""

    features: Features
    step: Floats
    latents: NDArray[np.float32]
    team: str
    sources: dict[str, float]
    notes: tuple[str, ...]


def is_game(path: Path) -> bool:
    """Whether a file holds such a game, by the names of its arrays alone."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False
    return {f"{name}.npy" for name in NEEDED} <= names


def read_game(path: Path) -> Game:
    """Raises `DataError` with one sentence for a file that is damaged or of another kind."""
    content = npz.load(path)
    rows = {name: _column(path, content, name) for name in (*NEEDED, *OPTIONAL)}
    count = len(rows["gt"])
    known = np.isfinite([rows[name] for name in ("gt", "hp", "hp_max", "gold_total", "level", "cw_x", "cw_y")]).all(0)
    with np.errstate(invalid="ignore"):
        known &= np.abs(rows["gold_total"]) < MOST_GOLD
    if count < 2 or not known.any():
        raise DataError(f"{path}: has no frame with time, hp, gold, level and position; expected some.")
    if (np.diff(rows["gt"][known]) <= 0).any():
        raise DataError(f"{path}: gt goes back, expected the time of each frame to be later than that before.")
    number = np.flatnonzero(known)
    seen = {name: values[known] for name, values in rows.items()}
    about = _about(path, content)
    step = _steps(number, seen)
    gold = np.diff(seen["gold_total"], prepend=seen["gold_total"][0])
    alive = seen["hp"] > 0
    movement, step_of, sources, notes = _movements(number, seen, step, alive, about.projection.tilt_deg)
    features = Features(
        name=path.stem,
        number=number,
        movement=movement,
        abilities=_abilities(path, content, rows["gt"])[known],
        gold=gold,
        bar=np.where(alive[:, None], _on_screen(seen), np.nan),
    )
    missing = (f"{count - len(number)} of {count} frames are not known and left out",) if not known.all() else ()
    return Game(features, step_of, _latents(seen, step, gold, alive), about.team, sources, missing + notes)


class _Projection(msgspec.Struct):
    tilt_deg: float = TILT


class _About(msgspec.Struct):
    team: str = ""
    projection: _Projection = msgspec.field(default_factory=_Projection)


def _about(path: Path, content: npz.Content) -> _About:
    try:
        about = msgspec.json.decode(npz.text(path, content, "meta", "{}"), type=_About)
    except msgspec.MsgspecError as error:
        raise DataError(f"{path}: meta is no JSON object as expected ({error}).") from None
    if not 10 <= about.projection.tilt_deg <= 90:
        raise DataError(f"{path}: meta says tilt_deg {about.projection.tilt_deg}, expected 10 to 90 degrees.")
    return about


def _column(path: Path, content: npz.Content, name: str) -> Floats:
    """A column of the file: (frames,); NaN throughout where an optional one is absent."""
    count = len(content["gt"]) if "gt" in content and content["gt"].ndim else 0
    if name not in content:
        if name in NEEDED:
            raise DataError(f"{path}: the array {name!r} is missing; expected {', '.join(NEEDED)}.")
        return np.full(count, np.nan)
    array = content[name]
    if array.shape != (count,) or array.dtype.kind not in "fiub":
        raise DataError(f"{path}: {name} is {array.shape} of {array.dtype}, expected ({count},) numbers as gt has.")
    return array.astype(np.float64)


def _steps(number: NDArray[np.int64], seen: dict[str, Floats]) -> Floats:
    """How far the player went since the frame before: (n, 2), NaN where that is missing, 0 for a teleport."""
    step = np.diff(np.column_stack([seen["cw_x"], seen["cw_y"]]), axis=0, prepend=np.nan)
    step[np.diff(number, prepend=-1) != 1] = np.nan
    step[np.hypot(*step.T) >= TELEPORT] = 0.0
    return step


def _movements(
    number: NDArray[np.int64], seen: dict[str, Floats], step: Floats, alive: NDArray[np.bool_], tilt: float
) -> tuple[NDArray[np.int8], Floats, dict[str, float], tuple[str, ...]]:
    """Movements (n,), the vectors that they were found from (n, 2), how many from where, and what to say of it."""
    ahead = (seen["cs_y"] - seen["mv_hy"]) / np.sin(np.deg2rad(tilt))
    on_screen = np.column_stack([seen["mv_hx"] - seen["cs_x"], ahead])
    way = np.column_stack([seen["wp_x"] - seen["cw_x"], seen["wp_y"] - seen["cw_y"]])
    notes: tuple[str, ...] = ()
    if _is_future(number, seen):
        on_screen[:] = np.nan
        notes = ("mv_hx, mv_hy are where the player is half a second later, no orders: not read",)
    found, source = step, np.where(np.isnan(step).any(axis=1), 4, 2)
    for place, order in ((1, way), (0, on_screen)):  # the later one counts
        given = np.isfinite(order).all(axis=1) & (order != 0).any(axis=1)
        found, source = np.where(given[:, None], order, found), np.where(given, place, source)
    source[~alive | (found == 0).all(axis=1)] = 3
    found = np.where((source >= 3)[:, None], 0.0, found)
    slices = np.rint(np.arctan2(found[:, 1], found[:, 0]) * (SLICES / (2 * np.pi))).astype(np.int64) % SLICES
    shares = {name: float((source == place).mean()) for place, name in enumerate(SOURCES)}
    movement = np.select([source == 3, source == 4], [NONE, UNKNOWN], slices).astype(np.int8)
    return movement, found, shares, notes


def _is_future(number: NDArray[np.int64], seen: dict[str, Floats]) -> bool:
    """Whether `mv_speed` is how far the player gets in half a second, and `mv_hx`, `mv_hy` so where it is then."""
    together = number[LATER:] - number[:-LATER] == LATER
    far = np.hypot(seen["cw_x"][LATER:] - seen["cw_x"][:-LATER], seen["cw_y"][LATER:] - seen["cw_y"][:-LATER])
    speed = seen["mv_speed"][:-LATER]
    asked = together & np.isfinite(speed)
    return bool(asked.any()) and float((np.abs(speed - far)[asked] < 1).mean()) > 0.9


def _abilities(path: Path, content: npz.Content, times: Floats) -> NDArray[np.bool_]:
    """Abilities that were cast in each frame of the file: (frames, 8)."""
    pressed = np.zeros((len(times), len(ABILITIES)), bool)
    cast, names = (np.atleast_1d(content.get(key, np.empty(0))) for key in ("casts_t", "casts_name"))
    if cast.shape != names.shape or cast.dtype.kind not in "fiu" or (len(names) and names.dtype.kind != "U"):
        raise DataError(
            f"{path}: casts_t {cast.shape} of {cast.dtype} and casts_name {names.shape} of {names.dtype} do not fit, "
            "expected times and as many names."
        )
    first = np.searchsorted(np.where(np.isfinite(times), times, np.inf), cast).tolist()
    casts = list(zip(first, names.tolist(), strict=True))
    spells = content.get("spell", np.empty(0))
    if spells.shape == times.shape and spells.dtype.kind == "U":
        begun = 1 + np.flatnonzero(spells[1:] != spells[:-1])
        casts += [(row, spells[row]) for row in begun.tolist() if spells[row].endswith("Active")]
    for row, name in casts:
        if row < len(times) and (key := ability(name)):
            pressed[row, ABILITIES.index(key)] = True
    return pressed


def ability(cast: str) -> str | None:
    """Which of `ABILITIES` a cast is: GarenQ q, SummonerFlash f, other summoner spells d, 3077Active item, recall b."""
    if "recall" in cast.lower():
        return "b"
    if cast.startswith("Summoner"):
        return "f" if cast.endswith("Flash") else "d"
    if cast[:1].isdigit():
        return "item"
    return cast[-1].lower() if cast[-1:] in ("Q", "W", "E", "R") else None


def _on_screen(seen: dict[str, Floats]) -> Floats:
    """Where the player is on the screen, 1 where that is not known (the camera is still on its way): (n, 2)."""
    return np.nan_to_num(np.column_stack([seen["cs_x"], seen["cs_y"]]), nan=1.0)


def _latents(seen: dict[str, Floats], step: Floats, gold: Floats, alive: NDArray[Any]) -> NDArray[np.float32]:
    """The state as latents: (n, 14, 1, 1), in the order of `CHANNELS`."""
    half, step = MAP / 2, np.nan_to_num(step)
    opponent = np.isfinite(seen["opp_hp"]) & (seen["opp_hp_max"] > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        others = np.where(opponent, seen["opp_hp"] / seen["opp_hp_max"], 0.0)
    columns = [
        (seen["cw_x"] - half) / half, (seen["cw_y"] - half) / half, step[:, 0] / 20, step[:, 1] / 20,
        seen["hp"] / np.maximum(seen["hp_max"], 1), np.diff(seen["hp"], prepend=seen["hp"][0]) / 100,
        seen["hp_max"] / 1000, alive, seen["level"] / 10, np.log1p(np.maximum(gold, 0)), seen["gold_total"] / 5000,
        others, opponent, np.nan_to_num(seen["opp_screen_ok"]),
    ]  # fmt: skip
    latents: NDArray[np.float32] = np.clip(np.column_stack(columns), -20, 20)[:, :, None, None].astype(np.float32)
    return latents


def reads(path: str | Path) -> str:
    """Empty for a folder of recorded games and for games that can be parsed, else what was looked for in vain."""
    place = Path(path).expanduser()
    recorded = any(place.glob(f"{FEATURES}/*/{FILE}")) or any(place.glob(f"{LATENTS}/*.npz"))
    if recorded or any(is_game(file) for file in files_of(place)):
        return ""
    return (
        f"no recorded game ({FEATURES}/VIDEO/{FILE}) and no League of Legends game (.npz with gt, hp, gold_total, cw_x)"
    )


def files_of(source: Path) -> list[Path]:
    """The .npz files at a path, by name."""
    return sorted(source.glob("*.npz")) if source.is_dir() else [source] if source.suffix == ".npz" else []
