"""matplotlib drawing ggarray's arrays: the data in its artists against the data of NumPy's."""

import io

import matplotlib as mpl
import numpy as np
import pytest

import ggarray as xp
from conformance.clients.comparing import Given, arrive
from conformance.clients.refusals import REFUSALS

mpl.use("Agg")

from matplotlib.figure import Figure

_RNG = np.random.default_rng(0)
DATA = {
    "x": np.sort(_RNG.standard_normal(8)),
    "y": _RNG.standard_normal(8),
    "single": _RNG.standard_normal(8).astype(np.float32),
    "columns": _RNG.standard_normal((8, 3)),
    "image": _RNG.random((6, 5)),
    "colours": _RNG.random((6, 5, 3)),
    "whole": _RNG.integers(1, 9, 8),
    "truth": _RNG.random((6, 5)) > 0.5,
    "positive": _RNG.random(8) + 0.1,
    "angles": np.linspace(0.0, 3.0, 8),
}


def paths(collection):
    return [each.vertices for each in collection.get_paths()]


def rectangles(bars):
    return [each.get_bbox().bounds for each in bars]


# What draws, and gives the data as it has arrived in the artists.
CASES = {
    "plot": lambda ax, g: [line.get_xydata() for line in ax.plot(g.x, g.y)],
    "plot without x": lambda ax, g: [line.get_xydata() for line in ax.plot(g.single, "o-")],
    "plot of columns": lambda ax, g: [line.get_xydata() for line in ax.plot(g.x, g.columns)],
    "plot of an expression": lambda ax, g: ax.plot(g.x, g.columns @ g.x[:3])[0].get_ydata(),
    "semilogy": lambda ax, g: ax.semilogy(g.x, g.positive)[0].get_xydata(),
    "step": lambda ax, g: ax.step(g.x, g.y)[0].get_xydata(),
    "stem": lambda ax, g: ax.stem(g.x, g.y).markerline.get_xydata(),
    "scatter": lambda ax, g: [
        (dots := ax.scatter(g.x, g.y, s=g.positive, c=g.whole)).get_offsets(),
        dots.get_sizes(),
        dots.get_array(),
    ],
    "errorbar": lambda ax, g: [
        (bars := ax.errorbar(g.x, g.y, yerr=g.positive, xerr=0.1)).lines[0].get_xydata(),
        *[each.get_segments() for each in bars.lines[2]],
    ],
    "errorbar of two sides": lambda ax, g: (
        ax.errorbar(g.x, g.y, yerr=g.xp.stack([g.positive, g.positive * 2]))
        .lines[2][0]
        .get_segments()
    ),
    "bar": lambda ax, g: rectangles(ax.bar(g.x, g.positive, width=0.1, yerr=g.positive)),
    "barh": lambda ax, g: rectangles(ax.barh(g.whole, g.positive, left=g.y)),
    "stacked bars": lambda ax, g: rectangles(ax.bar(g.x, g.positive, bottom=g.positive)),
    "hist": lambda ax, g: (*(h := ax.hist(g.y, bins=4))[:2], rectangles(h[2])),
    "hist with weights": lambda ax, g: ax.hist(g.y, bins=g.array([-3, 0, 3]), weights=g.positive)[
        0
    ],
    "hist of columns": lambda ax, g: ax.hist(g.columns, bins=3)[0],
    "hist2d": lambda ax, g: ax.hist2d(g.x, g.y, bins=3)[0],
    "imshow": lambda ax, g: ax.imshow(g.image).get_array(),
    "imshow of colours": lambda ax, g: ax.imshow(g.colours).get_array(),
    "imshow of truth values": lambda ax, g: ax.imshow(g.truth).get_array(),
    "imshow between limits": lambda ax, g: [
        (image := ax.imshow(g.image, vmin=g.image.min(), vmax=g.image.max())).get_clim(),
        image.norm(image.get_array()),
    ],
    "matshow": lambda ax, g: ax.matshow(g.image).get_array(),
    "pcolormesh": lambda ax, g: ax.pcolormesh(g.image).get_array(),
    "pcolormesh on a grid": lambda ax, g: ax.pcolormesh(
        g.x[:5], g.angles[:6], g.image, shading="nearest"
    ).get_coordinates(),
    "contour": lambda ax, g: paths(ax.contour(g.image, levels=4)),
    "contourf": lambda ax, g: ax.contourf(g.image, levels=g.array([0.0, 0.5, 1.0])).levels,
    "quiver": lambda ax, g: [
        (arrows := ax.quiver(g.x, g.y, g.y, g.x)).get_offsets(),
        arrows.U,
    ],
    "fill_between": lambda ax, g: paths(ax.fill_between(g.x, g.y, g.y + 1, where=g.y > 0)),
    "stackplot": lambda ax, g: [paths(each) for each in ax.stackplot(g.x, g.columns.T**2)],
    "boxplot": lambda ax, g: [line.get_xydata() for line in ax.boxplot(g.columns)["medians"]],
    "violinplot": lambda ax, g: [paths(each) for each in ax.violinplot(g.columns)["bodies"]],
    "pie": lambda ax, g: [(each.theta1, each.theta2) for each in ax.pie(g.positive)[0]],
    "eventplot": lambda ax, g: ax.eventplot(g.x)[0].get_segments(),
    "vlines": lambda ax, g: ax.vlines(g.x, 0, g.y).get_segments(),
    "hlines": lambda ax, g: ax.hlines(g.y, g.x, 2).get_segments(),
    "lines at a number": lambda ax, g: [
        ax.axhline(g.y[2]).get_ydata(),
        ax.axvline(g.x.mean()).get_xdata(),
    ],
    "text at a number": lambda ax, g: ax.text(g.x[1], g.y[2], "here").get_position(),
    "annotation": lambda ax, g: ax.annotate("here", (g.x[1], g.y[2])).xy,
    "limits": lambda ax, g: ax.set_xlim(g.x.min(), g.x.max()),
    "ticks": lambda ax, g: [each.get_loc() for each in ax.set_xticks(g.x[::2])],
    "set_data": lambda ax, g: (
        (line := ax.plot([], [])[0]).set_data(g.x, g.y),
        line.get_xydata(),
    )[1],
    "spy": lambda ax, g: ax.spy(g.truth).get_array(),
    "correlation": lambda ax, g: ax.acorr(g.y, maxlags=3)[1],
}


def as_lists(x):
    """Nested sequences of arrays and numbers as one flat list of plain arrays."""
    if isinstance(x, (tuple, list)):
        return [each for item in x for each in as_lists(item)]
    return [np.ma.filled(np.ma.asarray(np.asarray(x, float)))]


def drawn(title, g):
    """What arrives, the limits that follow from it, and that the figure can be drawn."""
    figure = Figure(figsize=(2, 2), dpi=50)
    axes = figure.add_subplot()
    arrived = CASES[title](axes, g)
    limits = [axes.get_xlim(), axes.get_ylim()]
    figure.savefig(picture := io.BytesIO(), format="raw")
    return as_lists([arrived, limits]), picture.getvalue()


@pytest.mark.parametrize("title", CASES)
def test_data_arrives_in_the_artists(title, device):
    arrived, picture = drawn(title, Given(DATA, xp, device))
    expected, wanted = drawn(title, Given(DATA))
    assert len(arrived) == len(expected)
    for each, value in zip(arrived, expected, strict=True):
        np.testing.assert_allclose(each, value, 1e-12)
    assert picture == wanted
    assert sum(value.size for value in expected) > 4, "nothing has arrived"


def test_polar_axes(device):
    def line(g):
        axes = Figure().add_subplot(projection="polar")
        return axes.plot(g.angles, g.positive)[0].get_xydata()

    np.testing.assert_array_equal(line(Given(DATA, xp, device)), line(Given(DATA)))


def test_colour_maps_and_norms(device):
    image, plain = arrive(DATA["image"], device), DATA["image"]
    colours = mpl.colormaps["viridis"]
    np.testing.assert_array_equal(colours(image), colours(plain))
    norm = mpl.colors.LogNorm(0.01, 1.0)
    np.testing.assert_array_equal(norm(image), norm(plain))


def test_what_was_drawn_does_not_follow_later_writing(device):
    """A line keeps the values it was given; a product that waited keeps its operands too."""
    x = arrive(DATA["x"], device)
    axes = Figure().add_subplot()
    line = axes.plot(x.copy(), x @ x * x)[0]
    x[...] = 0.0
    np.testing.assert_allclose(line.get_xdata(), DATA["x"])
    np.testing.assert_allclose(line.get_ydata(), DATA["x"] @ DATA["x"] * DATA["x"], 1e-12)


# -- what matplotlib refuses --------------------------------------------------------------------


def _colour(x):
    parts = x[:3] / 2
    with pytest.raises(ValueError, match="RGBA"):
        mpl.colors.to_rgba(parts)
    assert mpl.colors.to_rgba(parts.tolist()) == mpl.colors.to_rgba(np.asarray(parts))


REFUSED = {"a colour given as an array of its parts": _colour}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, device):
    REFUSED[what](arrive(DATA["positive"], device))


def test_each_refusal_is_tested():
    lines = [each for each in REFUSALS if each.library == "matplotlib"]
    assert {each.what for each in lines} == set(REFUSED)
    assert {each.version for each in lines} == {mpl.__version__}
