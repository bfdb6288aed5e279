"""`python leet_log.py STEPS FILE`: a log as W&B writes it, of four metrics. Run by an interpreter that has wandb.

Written record by record, since logging a million steps through wandb itself takes half an hour. The framing is the log
format of LevelDB behind a header of wandb's own: blocks of 32 KiB, each record with checksum, length and kind.
"""

from __future__ import annotations

import json
import math
import struct
import sys
import zlib
from pathlib import Path
from typing import Any, BinaryIO

BLOCK = 1 << 15
HEADER = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
RECORD = struct.Struct("<IHB")
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def write_framed(file: BinaryIO, data: bytes) -> None:
    """Append one record, in as many parts as blocks need."""
    begun = False
    while True:
        left = BLOCK - file.tell() % BLOCK
        if left < RECORD.size:
            file.write(bytes(left))
            left = BLOCK
        part, data = data[: left - RECORD.size], data[left - RECORD.size :]
        kind = (MIDDLE if begun else FIRST) if data else (LAST if begun else WHOLE)
        file.write(RECORD.pack(zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part)
        if not data:
            return
        begun = True


def metrics(step: int) -> dict[str, float]:
    slow = 1 + step / 1e5
    return {"loss": 2 / slow, "accuracy": 1 - 1 / slow, "lr": 1e-3, "grad": 1 + 0.1 * math.sin(step)}


def main(steps: int, path: Path) -> None:
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[import-not-found]

    def history(step: int) -> Any:
        record = Record()
        record.history.step.num = step
        own = {"_step": step, "_timestamp": 1.79e9 + step, "_runtime": float(step)}
        for name, value in {**own, **metrics(step)}.items():
            item = record.history.item.add()
            item.nested_key.append(name)
            item.value_json = json.dumps(value)
        return record

    began, ended = Record(), Record()
    began.run.run_id = began.run.project = "bench"
    began.run.start_time.GetCurrentTime()
    ended.exit.exit_code = 0
    with path.open("wb") as file:
        file.write(HEADER)
        for number in range(steps + 2):
            record = began if number == 0 else ended if number > steps else history(number - 1)
            record.num = number + 1
            write_framed(file, record.SerializeToString())


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
