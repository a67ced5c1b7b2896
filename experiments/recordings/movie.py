"""Frames as MP4 (H.264), written one by one; needs the extra `video`, whose wheel brings ffmpeg."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from PIL import Image

PACKAGE = "imageio_ffmpeg"
QUALITY = 8  # of 10
NEEDS = "MP4 needs imageio-ffmpeg (pip install 'sojourn[video]'), or give a name ending in .gif"


def can_write() -> bool:
    """Whether the extra is installed."""
    return find_spec(PACKAGE) is not None


def save_mp4(path: Path, drawn: Iterator[Image.Image], frames_per_second: float) -> int:
    """Write the frames as they come; returns how many they are. Needs `can_write()`."""
    import imageio_ffmpeg  # an extra: only who asks for MP4 has it

    count, writer = 0, None
    for frame in drawn:
        even = _even(frame)
        if writer is None:
            writer = imageio_ffmpeg.write_frames(
                str(path), even.size, fps=frames_per_second, quality=QUALITY, macro_block_size=1
            )
            writer.send(None)
        writer.send(even.tobytes())
        count += 1
    if writer is not None:
        writer.close()
    return count


def _even(frame: Image.Image) -> Image.Image:
    """The frame with a line more where a side is odd: H.264 halves the resolution of colours."""
    size = (frame.width + frame.width % 2, frame.height + frame.height % 2)
    if size == frame.size:
        return frame
    larger = Image.new("RGB", size, frame.getpixel((0, 0)))
    larger.paste(frame)
    return larger
