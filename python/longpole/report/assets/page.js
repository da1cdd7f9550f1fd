"use strict";
(() => {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const duration = (ns) => {
    const [size, unit] = units.find(([size]) => Math.abs(ns) >= size * 0.9995) || [1, "ns"];
    const value = ns / size;
    const digits = unit === "ns" ? 0 : Math.max(3 - String(Math.floor(Math.abs(value))).length, 0);
    return ns === 0 ? "0 s" : `${value.toFixed(digits)} ${unit}`;
  };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ROW = 18, LABEL = 26;

  class Lanes {
    constructor(box) {
      this.box = box;
      this.data = JSON.parse(document.getElementById(box.dataset.from).textContent);
      for (const row of this.data.rows) {
        let at = 0;
        row.starts = row.starts.map((step) => (at += step));
      }
      this.canvas = box.querySelector("canvas");
      this.tip = box.querySelector(".tip");
      const panel = box.parentElement;
      this.told = panel.querySelector(".told");
      this.whole = [0, this.data.length_ns];
      this.view = [...this.whole];
      this.chosen = null;
      box.style.height = `${this.data.rows.length * ROW + LABEL}px`;
      for (const button of panel.querySelectorAll("button[data-do]"))
        button.addEventListener("click", () => this.act(button.dataset.do));
      for (const button of document.querySelectorAll(`button[data-lanes="${box.dataset.from}"]`))
        button.addEventListener("click", () => {
          this.choose(0, Number(button.dataset.segment));
          panel.scrollIntoView({ block: "nearest" });
          this.canvas.focus({ preventScroll: true });
        });
      this.listen();
      new ResizeObserver(() => this.draw()).observe(box);
      dark.addEventListener("change", () => this.draw());
    }

    listen() {
      const canvas = this.canvas;
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
        event.preventDefault();
        this.zoom(Math.exp(event.deltaY / 300), this.time(event));
      }, { passive: false });
      canvas.addEventListener("pointerdown", (event) => {
        this.drag = { x: event.clientX, view: [...this.view], moved: false };
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointermove", (event) => this.move(event));
      canvas.addEventListener("pointerup", (event) => {
        const drag = this.drag;
        this.drag = null;
        if (drag && !drag.moved) {
          const found = this.find(event);
          if (found) this.choose(...found);
        }
      });
      canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
      canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.time(event)));
      canvas.addEventListener("keydown", (event) => {
        const keys = { "+": "in", "=": "in", "-": "out", "0": "all", ArrowLeft: "left", ArrowRight: "right", n: "next", p: "previous" };
        if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
        event.preventDefault();
        this.act(keys[event.key]);
      });
    }

    act(what) {
      const [start, end] = this.view, middle = (start + end) / 2, step = (end - start) / 4;
      if (what === "in") this.zoom(0.5, middle);
      else if (what === "out") this.zoom(2, middle);
      else if (what === "all") this.show(...this.whole);
      else if (what === "left") this.show(start - step, end - step);
      else if (what === "right") this.show(start + step, end + step);
      else {
        const n = this.data.rows[0].starts.length;
        const now = this.chosen && this.chosen[0] === 0 ? this.chosen[1] : what === "next" ? -1 : n;
        const to = now + (what === "next" ? 1 : -1);
        if (to >= 0 && to < n) this.choose(0, to);
      }
    }

    choose(row, item) {
      this.chosen = [row, item];
      const lane = this.data.rows[row];
      const start = lane.starts[item], length = lane.lengths[item];
      this.told.textContent = this.words(row, item);
      if (row === 0) {
        const room = Math.max(length * 1.5, (this.whole[1]) / 5000);
        this.show(start - room, start + length + room);
      } else this.draw();
    }

    words(row, item) {
      const lane = this.data.rows[row];
      const name = this.data.names[lane.names[item]];
      const kind = this.data.kinds[lane.kinds[item]];
      return `${name} (${kind}, ${lane.label}): ${duration(lane.lengths[item])}, from ${duration(lane.starts[item])}`;
    }

    show(start, end) {
      const least = 20, whole = this.whole[1];
      const length = Math.min(Math.max(end - start, least), whole);
      const from = Math.min(Math.max(start, 0), whole - length);
      this.view = [from, from + length];
      this.draw();
    }

    zoom(factor, at) {
      const [start, end] = this.view;
      this.show(at - (at - start) * factor, at + (end - at) * factor);
    }

    time(event) {
      const box = this.canvas.getBoundingClientRect();
      return this.view[0] + ((event.clientX - box.left) / box.width) * (this.view[1] - this.view[0]);
    }

    move(event) {
      if (this.drag) {
        const dx = event.clientX - this.drag.x;
        if (Math.abs(dx) > 3) this.drag.moved = true;
        const [start, end] = this.drag.view;
        const shift = (dx / this.canvas.clientWidth) * (end - start);
        if (this.drag.moved) this.show(start - shift, end - shift);
        return;
      }
      const found = this.find(event);
      this.tip.hidden = !found;
      if (!found) return;
      this.tip.textContent = this.words(...found);
      const box = this.box.getBoundingClientRect();
      const left = event.clientX - box.left;
      this.tip.style.left = `${Math.max(0, Math.min(left + 12, box.width - this.tip.offsetWidth - 4))}px`;
      this.tip.style.top = `${event.clientY - box.top + 14}px`;
    }

    find(event) {
      const box = this.canvas.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top - LABEL) / ROW);
      const lane = this.data.rows[row];
      if (!lane) return null;
      const at = this.time(event), slack = ((this.view[1] - this.view[0]) / box.width) * 2;
      let low = 0, high = lane.starts.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.starts[middle] <= at + slack) low = middle + 1; else high = middle;
      }
      const item = low - 1;
      return item >= 0 && lane.starts[item] + lane.lengths[item] >= at - slack ? [row, item] : null;
    }

    draw() {
      const canvas = this.canvas, ratio = devicePixelRatio || 1;
      const width = canvas.clientWidth, height = canvas.clientHeight;
      if (!width) return;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      pen.font = "11px system-ui, sans-serif";
      const [start, end] = this.view, scale = width / (end - start);
      const colors = this.data.kinds.map((kind) => color(this.data.colors[kind] || "annotation"));
      const text = color("text"), line = color("line"), ground = color("ground");
      this.axis(pen, width, height, start, end, line, color("dim"));
      this.data.rows.forEach((lane, row) => {
        const top = LABEL + row * ROW;
        this.lane(pen, lane, row, top, { start, end, scale, width, colors, ground });
      });
      pen.textBaseline = "middle";
      this.data.rows.forEach((lane, row) => {
        if (!lane.label || lane.is_inner) return;
        const top = LABEL + row * ROW;
        const size = pen.measureText(lane.label).width;
        pen.globalAlpha = 0.85;
        pen.fillStyle = ground;
        pen.fillRect(0, top + 2, size + 8, ROW - 4);
        pen.globalAlpha = 1;
        pen.fillStyle = text;
        pen.fillText(lane.label, 4, top + ROW / 2);
      });
    }

    lane(pen, lane, row, top, at) {
      let last = -1;
      const { starts, lengths } = lane;
      for (let item = 0; item < starts.length; item++) {
        const from = starts[item], length = lengths[item];
        if (from > at.end) break;
        if (from + length < at.start) continue;
        const x = Math.max((from - at.start) * at.scale, 0);
        const right = Math.min((from + length - at.start) * at.scale, at.width);
        const size = Math.max(right - x, 1);
        if (size <= 1 && Math.floor(x) === last) continue;
        last = Math.floor(x);
        const is_chosen = this.chosen && this.chosen[0] === row && this.chosen[1] === item;
        pen.fillStyle = at.colors[lane.kinds[item]];
        pen.fillRect(x, top + 2, size > 3 ? size - 0.5 : size, ROW - 4);
        if (is_chosen) {
          pen.strokeStyle = color("text");
          pen.lineWidth = 2;
          pen.strokeRect(x, top + 2, Math.max(size, 3), ROW - 4);
        }
        if (size > 46) {
          pen.save();
          pen.beginPath();
          pen.rect(x + 2, top, size - 5, ROW);
          pen.clip();
          pen.fillStyle = at.ground;
          pen.textBaseline = "middle";
          pen.fillText(this.data.names[lane.names[item]], x + 4, top + ROW / 2);
          pen.restore();
        }
      }
    }

    axis(pen, width, height, start, end, line, dim) {
      const steps = Math.max(2, Math.floor(width / 110));
      const rough = (end - start) / steps, power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
      pen.strokeStyle = line;
      pen.fillStyle = dim;
      pen.lineWidth = 1;
      pen.textBaseline = "top";
      for (let at = Math.ceil(start / step) * step; at <= end; at += step) {
        const x = Math.round(((at - start) / (end - start)) * width) + 0.5;
        pen.beginPath();
        pen.moveTo(x, LABEL - 6);
        pen.lineTo(x, height);
        pen.stroke();
        if (x < width - 50) pen.fillText(duration(at), x + 3, 5);
      }
    }
  }

  const PAPER_WIDTH = 660; // of A4 and letter, in pixels

  const figures = (everything, width) => {
    if (typeof Plotly === "undefined") return;
    for (const box of document.querySelectorAll(".figure")) {
      // What is folded away is drawn when it is opened: the page is there at once.
      const folded = box.closest("details");
      if (folded && !folded.open && everything !== true) continue;
      const figure = JSON.parse(document.getElementById(box.dataset.from).textContent);
      const axis = { gridcolor: color("line"), linecolor: color("line"), zerolinecolor: color("line"), automargin: true };
      const layout = {
        ...figure.layout, width, autosize: !width, template: null, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: color("text"), family: "system-ui, sans-serif", size: 12 },
        margin: { l: 8, r: 8, t: 8, b: 40 },
        xaxis: { ...figure.layout.xaxis, ...axis }, yaxis: { ...figure.layout.yaxis, ...axis },
      };
      const data = figure.data.map((trace) => ({
        ...trace, marker: { ...trace.marker, color: trace.meta && trace.meta.color ? color(trace.meta.color) : trace.marker && trace.marker.color },
      }));
      Plotly.react(box, data, layout, { displayModeBar: false, responsive: true });
    }
  };

  addEventListener("DOMContentLoaded", () => {
    for (const box of document.querySelectorAll(".lanes")) new Lanes(box);
    figures();
    dark.addEventListener("change", () => figures());
    for (const part of document.querySelectorAll("details")) part.addEventListener("toggle", () => figures());
    const opened = () => {
      const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (target && target.querySelector("details")) target.querySelector("details").open = true;
    };
    addEventListener("hashchange", opened);
    opened();
    addEventListener("beforeprint", () => {
      for (const part of document.querySelectorAll("details")) part.open = true;
      figures(true, PAPER_WIDTH);
    });
    addEventListener("afterprint", () => figures(true));
  });
})();
