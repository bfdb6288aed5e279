"""Lines that training programs print for people, as each of them prints its own."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.foreign.console_line import read_line
from cockpit.core.foreign.line_shapes import LineShapes
from cockpit.core.foreign.rows import Row
from cockpit.core.foreign.text_log import TextParser

NAN = math.nan


class Told(NamedTuple):
    """What a person reads in a line."""

    line: str
    values: dict[str, float]
    step: float = NAN
    epoch: float = NAN


LINES = [
    Told("iter 10: loss 3.2345, time 23.45ms, mfu -100.00%", {"loss": 3.2345, "time": 23.45, "mfu": -100}, 10),
    Told("step 0: train loss 4.2874, val loss 4.2823", {"train loss": 4.2874, "val loss": 4.2823}, 0),
    Told("step 00010/21400 (0.05%) | loss: 10.234567 | lrm: 1.00 | tok/sec: 123,456 | total time: 1.20m",
         {"loss": 10.234567, "lrm": 1, "tok/sec": 123456, "total time": 1.2}, 10),
    Told("Step 1 | loss:0.5 lr:1e-05 tokens_per_second_per_gpu:123.4 ",
         {"loss": 0.5, "lr": 1e-5, "tokens_per_second_per_gpu": 123.4}, 1),
    Told("[rank0]:[titan] 2024-11-01 12:00:00,123 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss:  8.1234  "
         "\x1b[33mmemory: 12.34GiB(12.3%)  \x1b[34mtps: 1,234  \x1b[0m",
         {"loss": 8.1234, "memory": 12.34, "tps": 1234}, 1),
    Told(" [2024-01-01 00:00:00] iteration      100/  1000 | consumed samples:        25600 | elapsed time per "
         "iteration (ms): 612.3 | learning rate: 1.500E-04 | lm loss: 7.123456E+00 | number of nan iterations:   0 |",
         {"consumed samples": 25600, "elapsed time per iteration (ms)": 612.3, "learning rate": 1.5e-4,
          "lm loss": 7.123456, "number of nan iterations": 0}, 100),
    Told("Train: 0 [  50/1251 (  4%)]  Loss: 6.95 (6.95)  Time: 1.234s,  207.55/s  (1.2s, 207/s)  LR: 1.000e-05",
         {"Loss": 6.95, "Time": 1.234, "LR": 1e-5}, 50, 0),
    Told("Epoch: [3]  [  10/1251]  eta: 0:10:00  lr: 0.1  img/s: 100.123  loss: 6.9500 (7.0100)  max mem: 3200",
         {"lr": 0.1, "img/s": 100.123, "loss": 6.95, "max mem": 3200}, 10, 3),
    Told("2024/01/01 12:00:00 - mmengine - INFO - Epoch(train)  [1][  50/7330]  lr: 1.9820e-03  eta: 1 day, 2:03:04  "
         "loss: 1.6543", {"lr": 1.982e-3, "loss": 1.6543}, 50, 1),
    Told("Epoch(val) [1][625/625]    coco/bbox_mAP: 0.3450", {"coco/bbox_mAP": 0.345}, NAN, 1),
    Told("Iter(train) [ 50/1000]  lr: 0.1  loss: 0.2", {"lr": 0.1, "loss": 0.2}, 50),
    Told("Epoch [1/10], Step [100/500], Loss: 0.1234", {"Loss": 0.1234}, 100, 1),
    Told("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300039", {"Loss": 2.300039}, 640, 1),
    Told("[1,  2000] loss: 2.183", {"loss": 2.183}, 2000, 1),
    Told("Epoch: 001, Train Loss: 0.5, Val: 0.7000", {"Train Loss": 0.5, "Val": 0.7}, NAN, 1),
    Told("[Epoch 1/200] [Batch 10/469] [D loss: 0.512345] [G loss: -0.712]",
         {"D loss": 0.512345, "G loss": -0.712}, 10, 1),
    Told("{'loss': 0.5, 'grad_norm': nan, 'learning_rate': 5e-05, 'epoch': 0.1}",
         {"loss": 0.5, "grad_norm": NAN, "learning_rate": 5e-5}, NAN, 0.1),
    Told("{'loss': '0.5', 'learning_rate': '5e-05', 'epoch': '0.1'}", {"loss": 0.5, "learning_rate": 5e-5}, NAN, 0.1),
    Told("  1%|▏         | 10/1000 [00:05<08:00,  2.06it/s]{'loss': 0.5, 'epoch': 0.01}", {"loss": 0.5}, 10, 0.01),
    Told("Epoch 3:  45%|████▌     | 450/1000 [01:00<01:10,  7.85it/s, v_num=0, loss=0.345, lr=1e-4]",
         {"loss": 0.345, "lr": 1e-4}, 450, 3),
    Told("Validation DataLoader 0: 100%|██████████| 10/10 [00:00<00:00, 100it/s, loss=0.2]", {"val loss": 0.2}),
    Told("10/10 [==============================] - 1s 50ms/step - loss: 0.5012 - val_loss: 0.4",
         {"loss": 0.5012, "val_loss": 0.4}, 10),
    Told("\x1b[1m 7/10\x1b[0m \x1b[32m━━━━━━━━━━━━━━\x1b[0m\x1b[37m━━━━━━\x1b[0m \x1b[1m1s\x1b[0m 50ms/step "
         "- loss: 0.5", {"loss": 0.5}, 7),
    Told("I1128 15:00:00.000000 140 logging_writer.py:48] [100] accuracy=0.125, loss=0.5",
         {"accuracy": 0.125, "loss": 0.5}, 100),
    Told("[10]\ttrain-rmse:0.51234\tvalidation-rmse:0.61", {"train-rmse": 0.51234, "validation-rmse": 0.61}, 10),
    Told("global_step=1234, episodic_return=[20.]", {"episodic_return": 20}, 1234),
    Told("fps step: 12345 fps total: 5432 epoch: 10/1000 frames: 163840",
         {"fps step": 12345, "fps total": 5432, "frames": 163840}, NAN, 10),
    Told("epoch 001:     10 / 100 loss=5.3, ppl=39.4", {"loss": 5.3, "ppl": 39.4}, 10, 1),
    Told("2024-01-01 12:00:00 | INFO | trainer:log:23 - epoch 3 | loss 0.4 | acc 0.91",
         {"loss": 0.4, "acc": 0.91}, NAN, 3),
    Told("INFO:root:step=10 loss=0.5 tok_s=1.2M", {"loss": 0.5, "tok_s": 1.2e6}, 10),
    Told("epoch 10 loss 0.5 acc 0.9", {"loss": 0.5, "acc": 0.9}, NAN, 10),
    Told("Episode 10/1000, Reward: -20.5, Epsilon: 0.95", {"Reward": -20.5, "Epsilon": 0.95}, 10),
    Told("train Loss: 0.5012 Acc: 0.8012", {"train Loss": 0.5012, "train Acc": 0.8012}),
    Told("Test set: Average loss: 0.0456, Accuracy: 9852/10000 (99%)",
         {"Test Average loss": 0.0456, "Test Accuracy": 9852}),
    Told(" * Acc@1 69.758 Acc@5 89.078", {"Acc@1": 69.758, "Acc@5": 89.078}),
    Told("step=3 loss=-inf", {"loss": -math.inf}, 3),
    Told("step 100: saving checkpoint 3", {}, 100),
    Told("Downloading: 100%|██████████| 440/440 [00:00<00:00, 1.2MB/s]", {}),
    Told("Serving at http://localhost:6006/ (Press CTRL+C to quit)", {}),
    Told("Dear reader, on 2024-01-01 at 12:00 all 12 of us met: it was 3 o'clock", {}),
]  # fmt: skip


def same(found: Row, told: Row) -> bool:
    """NaN is the same as NaN."""
    return list(found.values) == list(told.values) and str(found) == str(told)


@pytest.mark.behaviour("programs-field-write-print")
@pytest.mark.parametrize("told", LINES, ids=[told.line[:30] for told in LINES])
def test_what_a_line_says(told: Told) -> None:
    row = read_line(told.line)
    assert same(
        row._replace(time=NAN), Row({k: float(v) for k, v in told.values.items()}, float(told.step), float(told.epoch))
    )
    shapes = LineShapes()
    assert same(shapes.read(told.line), row)
    assert same(shapes.read(told.line), row)


numbers = st.one_of(
    st.integers(0, 10**7).map(str), st.integers(1000, 10**9).map("{:,}".format), st.floats(0, 1e6).map("{:.4f}".format),
    st.floats(1e-9, 1e9).map("{:.3e}".format), st.sampled_from(["nan", "inf", "1.2M", "0", "7.", ".5"]),
)  # fmt: skip
words = st.sampled_from(
    ["step", "epoch", "epoch3", "loss", "val loss", "acc@1", "Loss:", "lr=", "time: ", "[", "]", " | ", ", ", " - ",
     "/", "-", "+", " ", "  ", "%|██ |", "(", "ms", "'x': ", "train", "seed", "\t", "2024-01-01 10:00:00 ", "INFO "]
)  # fmt: skip


@given(st.lists(st.lists(st.one_of(words, numbers), max_size=9), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_reading_by_shapes_is_reading(lines: list[list[str]]) -> None:
    shapes = LineShapes()
    for parts in lines:
        for line in ("".join(parts), " ".join(parts)):
            assert same(shapes.read(line), read_line(line)), line


def rows(text: str) -> list[Row]:
    parse = TextParser()
    return [row for line in text.splitlines() if (row := parse(line.encode())) is not None]


def test_what_stands_under_a_heading_is_of_its_place() -> None:
    tutorial = "Epoch 0/24\n----\ntrain Loss: 0.5 Acc: 0.75\nval Loss: 0.25 Acc: 0.8\n\nEpoch 1/24\nval Loss: 0.125\n"
    assert [(row.values, row.epoch) for row in rows(tutorial)] == [
        ({"train Loss": 0.5, "train Acc": 0.75}, 0.0), ({"val Loss": 0.25, "val Acc": 0.8}, 0.0),
        ({"val Loss": 0.125}, 1.0),
    ]  # fmt: skip
    robots = "####\n   Learning iteration 7/1500\nMean reward: 1.5\nTotal timesteps: 98304\nIteration time: 1.34s\n"
    assert [(row.values, row.step) for row in rows(robots)] == [
        ({"Mean reward": 1.5}, 7.0), ({"Iteration time": 1.34}, 7.0)
    ]  # fmt: skip
    keras = "Epoch 2/3\n1/2 [=>...] - ETA: 1s - loss: 4.0\n2/2 [====] - 1s 5ms/step - loss: 3.0 - val_loss: 5.0\n"
    assert [(row.values, row.step, row.epoch) for row in rows(keras)] == [
        ({"loss": 4.0}, 1.0, 2.0), ({"loss": 3.0, "val_loss": 5.0}, 2.0, 2.0)
    ]  # fmt: skip


def test_a_line_without_a_place_counts_where_it_tells_a_result() -> None:
    text = "lr: 0.1\nparameters: 124\nstep 5: loss 2.0\nval loss: 1.5\nsaved: 3\nstep 6: loss 1.0\n"
    assert [(row.values, str(row.step)) for row in rows(text)] == [
        ({"loss": 2.0}, "5.0"), ({"val loss": 1.5}, "nan"), ({"loss": 1.0}, "6.0")
    ]  # fmt: skip


TABLE = """\
-----------------------------
| rollout/           |      |
|    ep_rew_mean     | {} |
| time/              |      |
|    total_timesteps | {}    |
|    fps             | 1e+03 |
-----------------------------
"""


def test_a_table_is_a_row() -> None:
    found = rows("Using cpu device\n" + TABLE.format(20.5, 2048) + TABLE.format(-1.5, 4096))
    assert [(row.values, row.step) for row in found] == [
        ({"rollout/ep_rew_mean": 20.5, "time/fps": 1000.0}, 2048.0),
        ({"rollout/ep_rew_mean": -1.5, "time/fps": 1000.0}, 4096.0),
    ]  # fmt: skip
