#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the dashboards as they look after the sample day: draw.py FOLDER writes NAME.svg there.

Grafana lays a dashboard out on 24 columns; so does this.
"""

import pathlib
import re
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import boards  # noqa: E402
import day  # noqa: E402

ROW, COLUMN = 0.42, 0.62  # inches
POINTS = 600  # seconds from point to point
UNITS = {"bytes": (2.0 ** 30, "GiB"), "percentunit": (0.01, "%"), "s": (1, "s"), "h": (1, "h"),
         "short": (1, "")}


def unit(panel):
    return UNITS[panel["fieldConfig"]["defaults"].get("unit", "short")]


def legend(target, labels):
    text = target.get("legendFormat") or ", ".join(
        value for key, value in sorted(labels.items()) if key not in ("__name__", "job"))
    return re.sub(r"{{(\w+)}}", lambda m: labels.get(m[1], ""), text)


def number(value, scale, suffix):
    value /= scale
    return f"{value:.1f}".rstrip("0").rstrip(".") + (suffix and " " + suffix)


def draw_stat(axes, panel, server):
    axes.axis("off")
    parts = []
    for target in panel["targets"]:
        for labels, value in server.instant(boards.expression(target), boards.END - 6 * 3600):
            name = target.get("legendFormat")
            parts.append((f"{name} " if name else "") + number(value, *unit(panel)))
    axes.text(0.5, 0.4, "\n".join(parts) or "none", ha="center", va="center",
              fontsize=15 if len(parts) < 2 else 10, color="#2a7f3f")


def draw_table(axes, panel, server):
    axes.axis("off")
    rows = []
    for target in panel["targets"]:
        for labels, value in server.instant(boards.expression(target), boards.END):
            rows.append(legend(target, labels) + f" {value:g}")
    axes.text(0.5, 0.5, "\n".join(rows) or "none", ha="center", va="center", fontsize=10)


def draw_series(axes, panel, server):
    scale, suffix = unit(panel)
    custom = panel["fieldConfig"]["defaults"].get("custom", {})
    if "certificate" in panel["targets"][0]["expr"]:
        scale, suffix = day.DAY, "days"  # as Grafana would
    lines = []
    for target in panel["targets"]:
        for labels, values in server.range(boards.expression(target), POINTS):
            values = {round((t - boards.END + day.DAY) / 3600, 3): v / scale
                      for t, v in values if v == v}
            if any(values.values()) or len(lines) < 2:
                lines.append((legend(target, labels), values))
    hours = sorted({hour for _, values in lines for hour in values})
    if custom.get("stacking", {}).get("mode") == "normal" and lines:
        axes.stackplot(hours, [[v.get(h, 0) for h in hours] for _, v in lines],
                       labels=[name for name, _ in lines], alpha=0.75, linewidth=0)
    else:
        for name, values in lines:
            axes.plot(hours, [values.get(h, float("nan")) for h in hours], label=name,
                      linewidth=0.9)
    axes.set_xlim(0, 24)
    axes.set_xticks(range(0, 25, 4), [f"{h}:00" for h in range(0, 25, 4)])
    if "min" in panel["fieldConfig"]["defaults"]:
        axes.set_ylim(bottom=0)
    axes.set_ylabel(suffix, fontsize=7)
    axes.tick_params(labelsize=6.5)
    axes.grid(alpha=0.25, linewidth=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if lines:
        axes.legend(fontsize=5.5, ncol=4, frameon=False, loc="upper left", handlelength=1.2,
                    columnspacing=1, borderaxespad=0, bbox_to_anchor=(0, -0.1))


DRAW = {"stat": draw_stat, "table": draw_table, "timeseries": draw_series}


def draw(content, server, path):
    panels = content["panels"]
    height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels)
    figure = plt.figure(figsize=(24 * COLUMN, height * ROW + 0.5))
    whole = height * ROW + 0.5
    for panel in panels:
        at = panel["gridPos"]
        flat = panel["type"] != "timeseries"
        left = 0.05 if flat else 0.45
        axes = figure.add_axes((
            (at["x"] * COLUMN + left) / (24 * COLUMN),
            1 - (0.5 + (at["y"] + at["h"]) * ROW - (0.05 if flat else 0.6)) / whole,
            (at["w"] * COLUMN - left - 0.15) / (24 * COLUMN),
            (at["h"] * ROW - (0.35 if flat else 0.95)) / whole))
        axes.set_title(panel["title"], fontsize=8.5, loc="left", fontweight="bold")
        DRAW[panel["type"]](axes, panel, server)
    figure.text(0.005, 1 - 0.32 / whole, content["title"], fontsize=13)
    # No date in it: the same picture twice.
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    # matplotlib ends some lines with a blank.
    path.write_text(re.sub(r" +$", "", path.read_text(encoding="utf-8"), flags=re.M),
                    encoding="utf-8")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update({"svg.hashsalt": "gpushare", "svg.fonttype": "none",
                         "font.family": "sans-serif", "path.simplify_threshold": 0.5})
    with boards.prometheus(day.day(boards.END)) as server:
        for name, content in boards.boards():
            print(f"draw.py: {name}", file=sys.stderr)
            draw(content, server, folder / f"{name}.svg")


if __name__ == "__main__":
    main()
