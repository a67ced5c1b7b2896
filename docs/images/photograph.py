"""Pictures for the README: a report in light and dark beside each other, a command in a terminal.

python docs/images/photograph.py report REPORT.html OUTPUT.png    needs chromium
python docs/images/photograph.py terminal OUTPUT.svg COMMAND ...  runs the command
"""

from __future__ import annotations

import io
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageChops
from rich.console import Console
from rich.text import Text

WINDOW = (1280, 1800)  # pixels of one half, before what is empty below both is cut
MARGIN = 20
SCALE = 0.7
HALVES = {  # which sections are photographed, under which colour scheme of the browser
    "light": (1, ("summary", "windowed_regret", "regret_split")),
    "dark": (0, ("memory", "transfer")),
}
COLUMNS = 112
# Rich's own frame without its fonts from another host.
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>.{unique_id}-matrix {{ font: {char_height}px monospace; }} {styles}</style>
<defs>{lines}</defs><rect width="{width}" height="{height}" fill="#16181c" rx="8"/>
<g transform="translate({terminal_x}, {terminal_y})">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""


def photograph_report(page: Path, output: Path) -> None:
    """Both halves, side by side; the other sections of the page are hidden."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("chromium is not in the path")
    picture = Image.new("RGB", (2 * WINDOW[0], WINDOW[1]))
    with tempfile.TemporaryDirectory() as folder:
        for place, (name, (scheme, sections)) in enumerate(HALVES.items()):
            shown = "".join(f":not([data-section={section}])" for section in sections)
            hidden = f"<style>main section{shown} {{ display: none }}</style></head>"
            copy, shot = Path(folder, f"{name}.html"), Path(folder, f"{name}.png")
            copy.write_text(page.read_text().replace("</head>", hidden, 1))
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            options += [f"--user-data-dir={folder}/profile", f"--screenshot={shot}"]
            options += [f"--window-size={WINDOW[0]},{WINDOW[1]}", "--virtual-time-budget=2000"]
            options += [f"--blink-settings=preferredColorScheme={scheme}", copy.as_uri()]
            subprocess.run([chromium, *options], check=True, capture_output=True)
            picture.paste(Image.open(shot).convert("RGB"), (place * WINDOW[0], 0))
    picture = picture.crop((0, 0, picture.width, min(picture.height, _used(picture) + MARGIN)))
    size = (round(picture.width * SCALE), round(picture.height * SCALE))
    smaller = picture.resize(size, Image.Resampling.LANCZOS)
    smaller.quantize(256, Image.Quantize.FASTOCTREE).save(output, optimize=True)


def _used(picture: Image.Image) -> int:
    """The row below which there is nothing in either half."""
    ends = []
    for left in (0, WINDOW[0]):
        half = picture.crop((left, 0, left + WINDOW[0], picture.height))
        empty = Image.new("RGB", half.size, half.getpixel((0, half.height - 1)))
        ends.append((ImageChops.difference(half, empty).getbbox() or (0, 0, 0, 0))[3])
    return max(ends)


def photograph_terminal(output: Path, command: Sequence[str]) -> None:
    """What a command prints, as SVG."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text(f"$ {shlex.join(command)}", style="bold green"))
    console.print(Text(done.stdout.rstrip()))
    console.save_svg(str(output), code_format=FRAME, unique_id="terminal")


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "report":
        photograph_report(Path(words[0]), Path(words[1]))
    else:
        photograph_terminal(Path(words[0]), words[1:])
