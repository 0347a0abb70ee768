"""The sheet every figure is drawn on: message on top, legend, axes, caption; sized in inches.

Nothing overlaps because everything that holds words is measured before the sheet gets its height.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import msgspec
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import FontProperties
from matplotlib.transforms import ScaledTranslation, Transform

from ioprof.report.figure import Figure
from ioprof.report.figures.style import Theme
from ioprof.report.layout import one_line, shorten, words

WIDTH_IN = 8.0
_MARGIN_IN = 0.22
_DPI = 100
_PNG_DPI = 2 * _DPI
_TITLE_PT = 13.0
_TEXT_PT = 9.0
_LINE = 1.38
"""Height of a line ÷ size of its letters."""
_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "svg.hashsalt": "ioprof",
    "svg.fonttype": "path",
    "hatch.linewidth": 0.8,
}


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What a figure says in words."""

    name: str
    title: str
    caption: str
    alt: str


class Sheet:
    """One figure while it is drawn. `axes` first, then `finish`."""

    def __init__(
        self,
        message: Message,
        *,
        theme: Theme,
        plot_in: float,
        left_in: float = 0.85,
        right_in: float = 0.25,
        axis_in: float = 0.55,
        legend: Sequence[Any] = (),
    ) -> None:
        """`plot_in` is the height of all axes together, `axis_in` the room under them for ticks
        and label, `legend` the handles to be explained above them."""
        self._message = message
        self.theme = theme
        self._left_in, self._right_in, self._plot_in = left_in, right_in, plot_in
        self._canvas = Canvas(figsize=(WIDTH_IN, 4.0), dpi=_DPI, facecolor=theme.paper)
        self._agg: Any = FigureCanvasAgg(self._canvas)
        with rc_context(_SETTINGS):
            title = self._wrapped(message.title, _TITLE_PT, "bold")
            caption = self._wrapped(message.caption, _TEXT_PT, "normal")
            key, key_in = self._key(legend)
            title_in, caption_in = _height(title, _TITLE_PT), _height(caption, _TEXT_PT)
            self._bottom_in = _MARGIN_IN + caption_in + 0.1 + axis_in
            top_in = self._bottom_in + plot_in + 0.14
            height_in = top_in + key_in + 0.06 + title_in + _MARGIN_IN
            self._canvas.set_size_inches(WIDTH_IN, height_in)
            self._height_in = height_in
            self._say("\n".join(title), height_in - _MARGIN_IN, _TITLE_PT, "bold", theme.ink)
            self._say("\n".join(caption), _MARGIN_IN + caption_in, _TEXT_PT, "normal", theme.muted)
            if key is not None:
                key.set_bbox_to_anchor(
                    (_MARGIN_IN, top_in + key_in), transform=self._canvas.dpi_scale_trans
                )

    def axes(self, *, rows: int = 1, gap_in: float = 0.16) -> list[Axes]:
        """Axes from top to bottom that share their horizontal axis."""
        each_in = (self._plot_in - gap_in * (rows - 1)) / rows
        width = (WIDTH_IN - self._left_in - self._right_in) / WIDTH_IN
        made: list[Axes] = []
        with rc_context(_SETTINGS):
            for row in range(rows):
                bottom_in = self._bottom_in + (rows - 1 - row) * (each_in + gap_in)
                place = (
                    self._left_in / WIDTH_IN,
                    bottom_in / self._height_in,
                    width,
                    each_in / self._height_in,
                )
                axes = self._canvas.add_axes(place, sharex=made[0] if made else None)
                self._dress(axes)
                if row < rows - 1:
                    axes.tick_params(labelbottom=False)
                made.append(axes)
        return made

    def beside(self, axes: Axes, points: float) -> Transform:
        """Where the data of `axes` are, moved to the right by some points."""
        return axes.transData + ScaledTranslation(points / 72, 0, self._canvas.dpi_scale_trans)

    def finish(self) -> Figure:
        """The figure as files: PNG at twice the nominal resolution, and SVG."""
        png, svg = io.BytesIO(), io.BytesIO()
        with rc_context(_SETTINGS):
            self._canvas.savefig(
                png, format="png", dpi=_PNG_DPI, facecolor=self.theme.paper, metadata=_NO_SOFTWARE
            )
            self._canvas.savefig(svg, format="svg", facecolor=self.theme.paper, metadata=_UNDATED)
        said = self._message
        return Figure(
            name=said.name,
            title=said.title,
            caption=said.caption,
            alt=said.alt,
            png=png.getvalue(),
            svg=svg.getvalue(),
        )

    def _say(self, text: str, top_in: float, size: float, weight: str, ink: str) -> None:
        self._canvas.text(
            _MARGIN_IN,
            top_in,
            text,
            transform=self._canvas.dpi_scale_trans,
            fontsize=size,
            fontweight=weight,
            color=ink,
            va="top",
            ha="left",
            linespacing=_LINE / 1.2,
            parse_math=False,
        )

    def _key(self, handles: Sequence[Any]) -> tuple[Any, float]:
        """The legend in as few rows as its words allow, and its height."""
        for columns in range(len(handles), 0, -1):
            key = self._canvas.legend(
                handles=list(handles),
                ncols=columns,
                loc="upper left",
                bbox_to_anchor=(0, 1),
                frameon=False,
                fontsize=_TEXT_PT,
                labelcolor=self.theme.ink,
                borderpad=0.1,
                borderaxespad=0.0,
                handletextpad=0.6,
                columnspacing=1.6,
            )
            for text in key.get_texts():
                text.set_parse_math(False)
            box = key.get_window_extent(self._agg.get_renderer())
            if box.width / _DPI <= WIDTH_IN - 2 * _MARGIN_IN or columns == 1:
                return key, box.height / _DPI + 0.06
            key.remove()
        return None, 0.0

    def _dress(self, axes: Axes) -> None:
        axes.set_facecolor(self.theme.paper)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(self.theme.muted)
            spine.set_linewidth(0.8)
        axes.tick_params(colors=self.theme.muted, labelsize=_TEXT_PT, length=3)
        for label in (axes.xaxis.label, axes.yaxis.label):
            label.set_color(self.theme.ink)
            label.set_fontsize(_TEXT_PT)
        axes.grid(visible=True, color=self.theme.faint, linewidth=0.7)
        axes.set_axisbelow(True)

    def _wrapped(self, text: str, size: float, weight: str) -> list[str]:
        """Lines no wider than the sheet, measured with the font they are drawn in."""
        font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
        renderer = self._agg.get_renderer()
        room = (WIDTH_IN - 2 * _MARGIN_IN) * _DPI
        lines: list[str] = []
        for word in (shorten(word, 60) for word in words(text)):
            longer = f"{lines[-1]} {word}" if lines else word
            width, _, _ = renderer.get_text_width_height_descent(longer, font, ismath=False)
            if lines and width <= room:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines


_NO_SOFTWARE = {"Software": None}
_UNDATED = {"Date": None, "Creator": None}


def _height(lines: Sequence[str], size: float) -> float:
    return len(lines) * size * _LINE / 72


def label(text: str, width: int = 34) -> str:
    """A name as it is drawn: on one line, its middle left out when it is too long."""
    return shorten(one_line(text), width)


def missing(axes: Axes, text: str, theme: Theme, *, keep_x: bool = False) -> None:
    """Say inside empty axes what is not there and why; `keep_x` where others share their ticks."""
    axes.grid(visible=False)
    axes.tick_params(left=False, labelleft=False)
    axes.spines["left"].set_visible(False)
    if not keep_x:
        axes.tick_params(bottom=False, labelbottom=False)
        axes.spines["bottom"].set_visible(False)
    axes.text(
        0.5,
        0.5,
        text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=_TEXT_PT,
        color=theme.muted,
        parse_math=False,
        wrap=True,
    )
