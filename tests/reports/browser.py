"""Pages laid out by a real browser, Chromium without a window, and what is wrong with them there."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# What a page must not do at a width: scroll sideways, let anything stick out, cut a figure's text, be hard to read.
_CHECK = """
function colour(text) { return (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number); }
function light(c) {
  const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = c.slice(0, 3).map(v => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function behind(win, element) {
  for (let at = element; at; at = at.parentElement) {
    const c = colour(win.getComputedStyle(at).backgroundColor);
    if (c.length < 4 || c[3] > 0.99) return c;
  }
  return [255, 255, 255];
}
function scrolls(win, element) {
  for (let at = element.parentElement; at; at = at.parentElement)
    if (["auto", "scroll"].includes(win.getComputedStyle(at).overflowX)) return true;
  return false;
}
function problems(frame) {
  const win = frame.contentWindow, doc = frame.contentDocument, width = frame.clientWidth, found = [];
  const said = e => e.tagName + " " + (e.textContent || "").trim().slice(0, 40);
  if (doc.documentElement.scrollWidth > width) found.push("scrolls sideways: " + doc.documentElement.scrollWidth);
  for (const e of doc.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const svg = e.ownerSVGElement;
    if (!svg && box.right > width + 1 && !scrolls(win, e)) found.push("sticks out: " + said(e));
    if (svg && e.tagName === "text") {
      const whole = svg.getBoundingClientRect();
      if (box.right > whole.right + 3 || box.left < whole.left - 3) found.push("is cut: " + said(e));
    }
    if (e.tagName === "FIGURE" && e.scrollWidth > e.clientWidth + 1) found.push("figure scrolls: " + said(e));
    if (e.tagName === "IMG" && !e.naturalWidth) found.push("no picture: " + e.alt);
    if ((e.tagName === "IMG" && !e.alt) || (e.tagName === "svg" && !e.getAttribute("aria-label")))
      found.push("has no words for those who do not see it: " + e.tagName);
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (own && (!svg || e.tagName === "text")) {
      const style = win.getComputedStyle(e), c = colour(svg ? style.fill : style.color);
      const [a, b] = [light(c), light(behind(win, e))].sort((x, y) => y - x);
      const inCell = svg && svg.querySelector("image, .cell, rect, [style*='fill-opacity']");
      if (!inCell && (a + 0.05) / (b + 0.05) < 4.4)
        found.push("is pale, " + ((a + 0.05) / (b + 0.05)).toFixed(1) + ": " + said(e));
    }
  }
  return found;
}
addEventListener("load", () => {
  const out = {};
  for (const frame of document.querySelectorAll("iframe")) out[frame.title] = problems(frame);
  const pre = document.createElement("pre");
  pre.id = "found";
  pre.textContent = JSON.stringify(out);
  document.body.replaceChildren(pre);
});
"""


def problems(pages: Mapping[str, str], width: int, folder: Path, dark: bool = False) -> dict[str, list[str]]:
    """What is wrong with each page (HTML by name) at a width; errors of the console are under "console"."""
    frames = "".join(
        f'<iframe title="{html.escape(name)}" style="width: {width}px; height: 3000px; border: 0" '
        f'srcdoc="{html.escape(page)}"></iframe>'
        for name, page in pages.items()
    )
    outer = folder / f"pages-{width}-{dark}.html"
    outer.write_text(
        f"<!DOCTYPE html><html><head><meta charset=utf-8></head><body>{frames}<script>{_CHECK}</script></body></html>"
    )
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder / 'chromium'}",
        "--enable-logging=stderr",
        "--v=0",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--virtual-time-budget=20000",
        "--dump-dom",
        outer.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, f"the browser gave no answer: {done.stderr[-2000:]}"
    answer: dict[str, list[str]] = json.loads(html.unescape(found[1]))
    answer["console"] = re.findall(r".*CONSOLE.*", done.stderr)
    return answer
