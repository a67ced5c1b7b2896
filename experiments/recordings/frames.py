"""Shots as frames of a moving picture: what is seen, below it the facts, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from ..drawing.panels import COLOURS
from .film import Shot

WIDTH, PICTURE, TEXT, PLOT = 340, 320, 108, 44  # pixels
MARGIN, LINE, SIZE = 10, 19, 14
LONGEST = 44  # characters of a line
GROUND, INK, SOFT = (22, 24, 28), (235, 235, 235), (150, 154, 160)
SHARP = 4  # times, from which on a picture is enlarged by whole pixels
HOLD = 3  # frames that the end of an episode stays


def frames(titles: Sequence[str], lives: Sequence[Iterator[Shot]]) -> Iterator[Image.Image]:
    """Frames of all lives side by side; a life that has ended stays as it was.

    Ends of episodes are held, in every life for itself.
    """
    last: list[Shot | None] = [None] * len(lives)
    for shots in zip_longest(*(_held(life) for life in lives)):
        last = [now or before for now, before in zip(shots, last, strict=True)]
        frame = Image.new(
            "RGB", (WIDTH * len(lives), MARGIN + LINE + PICTURE + TEXT + PLOT), GROUND
        )
        for place, (title, shot) in enumerate(zip(titles, last, strict=True)):
            if shot is not None:
                frame.paste(_panel(title, shot), (WIDTH * place, 0))
        yield frame


def save_gif(path: Path, drawn: Iterator[Image.Image], frames_per_second: float) -> int:
    """Write the frames as a GIF that repeats; returns how many they are."""
    small = [frame.quantize(64, dither=Image.Dither.NONE) for frame in drawn]
    first, *others = small
    first.save(
        path,
        save_all=True,
        append_images=others,
        duration=round(1000 / frames_per_second),
        loop=0,
        disposal=1,
    )
    return len(small)


def _held(life: Iterator[Shot]) -> Iterator[Shot]:
    for shot in life:
        yield from [shot] * (HOLD if shot.ends else 1)


def _panel(title: str, shot: Shot) -> Image.Image:
    panel = Image.new("RGB", (WIDTH, MARGIN + LINE + PICTURE + TEXT + PLOT), GROUND)
    draw, font = ImageDraw.Draw(panel), ImageFont.load_default(SIZE)
    draw.text((MARGIN, MARGIN), _short(title), INK, font)
    top = MARGIN + LINE + 4
    if shot.picture is None:
        _bars(draw, shot, top)
    else:
        seen = _fitted(Image.fromarray(shot.picture))
        panel.paste(seen, ((WIDTH - seen.width) // 2, top + (PICTURE - seen.height) // 2 - 4))
    for number, (text, colour) in enumerate(_facts(shot)):
        draw.text((MARGIN, top + PICTURE + number * LINE), _short(text), colour, font)
    _regret(draw, shot, top + PICTURE + TEXT - 8)
    return panel


def _facts(shot: Shot) -> Iterator[tuple[str, tuple[int, int, int]]]:
    yield f"task {shot.segment + 1}: {shot.task}", INK
    over = "  ends" if shot.ends else ""
    yield f"episode {shot.episode + 1}  step {shot.step}{over}", INK
    yield f"return {shot.total_return:.3g}   memory norm {shot.memory_norm:.3g}", INK
    if shot.regret:
        yield f"regret so far {shot.regret[-1]:.2f}, finished episodes {len(shot.regret)}", INK
    else:
        yield "regret so far: no episode tells yet", SOFT
    yield "below: regret, grey: random play", SOFT


def _bars(draw: ImageDraw.ImageDraw, shot: Shot, top: int) -> None:
    """How often every action was taken in this task."""
    count = len(shot.counts)
    width = (WIDTH - 2 * MARGIN) / count
    floor, most = top + PICTURE - 30, max(1, int(shot.counts.max()))
    font = ImageFont.load_default(SIZE)
    draw.text((MARGIN, top), "how often each action was taken in this task", SOFT, font)
    for action, taken in enumerate(shot.counts.tolist()):
        left = MARGIN + action * width
        height = (PICTURE - 70) * taken / most
        box = (left + 0.1 * width, floor - height, left + 0.9 * width, floor)
        draw.rectangle(box, fill=COLOURS[0])
        if width > 2 * SIZE:
            draw.text((left + 0.35 * width, floor + 4), str(taken), INK, font)


def _regret(draw: ImageDraw.ImageDraw, shot: Shot, top: int) -> None:
    """Regret so far over the episodes that tell, beside the line of random play."""
    bottom, right = top + PLOT - 8, WIDTH - MARGIN
    draw.line((MARGIN, bottom, right, bottom), fill=SOFT)
    values = (0.0, *shot.regret)
    steps = max(1, len(values) - 1)
    most = max(*values, float(steps), 1.0) if len(values) > 1 else 1.0

    def place(episode: int, value: float) -> tuple[float, float]:
        height = max(value, 0.0) / most * (PLOT - 10)
        return MARGIN + (right - MARGIN) * episode / steps, bottom - height

    if len(values) > 1:
        draw.line((*place(0, 0.0), *place(steps, float(steps))), fill=(90, 94, 100))
        draw.line([place(i, value) for i, value in enumerate(values)], fill=COLOURS[5], width=2)


def _fitted(picture: Image.Image) -> Image.Image:
    """As large as the frame allows; tiny pictures keep sharp pixels."""
    scale = min((WIDTH - 2 * MARGIN) / picture.width, (PICTURE - 8) / picture.height)
    size = (max(1, int(picture.width * scale)), max(1, int(picture.height * scale)))
    how = Image.Resampling.NEAREST if scale >= SHARP else Image.Resampling.LANCZOS
    return picture.resize(size, how)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
