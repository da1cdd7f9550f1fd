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
  const timelines = new Map();

  class Lanes {
    constructor(box) {
      this.box = box;
      this.data = JSON.parse(box.querySelector("script").textContent);
      for (const row of this.data.rows) {
        let at = 0, event = 0;
        row.starts = row.starts.map((step) => (at += step));
        row.events = row.events.map((step) => (event += step));
      }
      const section = box.closest("section").id;
      if (section.endsWith("timeline")) timelines.set(section.slice(0, -"timeline".length), this);
      this.canvas = box.querySelector("canvas");
      this.tip = box.querySelector(".tip");
      this.panel = box.parentElement;
      this.told = this.panel.querySelector(".told");
      this.whole = [0, this.data.length_ns];
      this.view = [...this.whole];
      this.chosen = null;
      this.gutter = 0;
      box.style.height = `${this.data.rows.length * ROW + LABEL}px`;
      for (const button of this.panel.querySelectorAll("button[data-do]"))
        button.addEventListener("click", () => this.act(button.dataset.do));
      for (const button of this.panel.querySelectorAll("button[data-segment]"))
        button.addEventListener("click", () => {
          this.present(Number(button.dataset.row), Number(button.dataset.segment));
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
        // Along the lane of what is chosen, by default along the critical path.
        const [row, item] = this.chosen || [0, what === "next" ? -1 : this.data.rows[0].starts.length];
        const to = item + (what === "next" ? 1 : -1);
        if (to >= 0 && to < this.data.rows[row].starts.length) this.walk(row, to);
      }
    }

    // The path comes first: what is drawn as an event of its own is found before its part of it.
    find_event(event) {
      for (let row = this.data.rows.length - 1; row >= 0; row--) {
        const item = this.data.rows[row].events.indexOf(event);
        if (item >= 0) return [row, item];
      }
      return null;
    }

    present(row, item) {
      this.reveal();
      this.walk(row, item);
    }

    present_stretch(start, length) {
      this.reveal();
      this.chosen = null;
      this.told.textContent = `${duration(length)}, from ${duration(start)}`;
      this.show(start - length / 20, start + length * 1.05);
    }

    reveal() {
      for (let at = this.panel; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
      const height = innerHeight * 0.8;
      this.panel.scrollIntoView({ block: this.panel.offsetHeight < height ? "center" : "start" });
      this.canvas.focus({ preventScroll: true });
    }

    choose(row, item) {
      this.chosen = [row, item];
      this.told.textContent = this.words(row, item);
      if (this.data.is_flame) this.walk(row, item);
      else this.draw();
    }

    walk(row, item) {
      this.chosen = [row, item];
      this.told.textContent = this.words(row, item);
      const lane = this.data.rows[row], start = lane.starts[item], length = lane.lengths[item];
      const room = this.data.is_flame ? 0 : Math.max(length * 1.5, this.whole[1] / 5000);
      this.show(start - room, start + length + room);
    }

    words(row, item) {
      const lane = this.data.rows[row], length = lane.lengths[item];
      const name = this.data.names[lane.names[item]], kind = this.data.kinds[lane.kinds[item]];
      if (this.data.is_flame) return `${name} (${kind}): ${duration(length)}, ${(100 * length / this.whole[1]).toPrecision(3)} %`;
      const launcher = lane.launchers.length ? lane.launchers[item] : 0, event = lane.events.length ? lane.events[item] : -1;
      const by = launcher ? `, launched by ${this.data.names[launcher - 1]}` : "", which = event >= 0 ? `, event ${event}` : "";
      return `${name} (${kind}, ${lane.label}): ${duration(length)}, from ${duration(lane.starts[item])}${by}${which}`;
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
      const at = (event.clientX - box.left - this.gutter) / (box.width - this.gutter);
      return this.view[0] + at * (this.view[1] - this.view[0]);
    }

    move(event) {
      if (this.drag) {
        const dx = event.clientX - this.drag.x;
        if (Math.abs(dx) > 3) this.drag.moved = true;
        const [start, end] = this.drag.view;
        const shift = (dx / (this.canvas.clientWidth - this.gutter)) * (end - start);
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
      this.labels(pen, width);
      pen.translate(this.gutter, 0);
      pen.beginPath();
      pen.rect(0, 0, width - this.gutter, height);
      pen.clip();
      const [start, end] = this.view, room = width - this.gutter;
      const at = { start, end, width: room, scale: room / (end - start), ground: color("ground"), text: color("text") };
      at.colors = this.data.colors.map(color);
      this.axis(pen, room, height, start, end, color("line"), color("dim"));
      this.data.rows.forEach((lane, row) => this.lane(pen, lane, row, LABEL + row * ROW, at));
    }

    labels(pen, width) {
      const shown = this.data.rows.map((lane) => (lane.is_inner ? "" : lane.label));
      const widest = Math.max(...shown.map((label) => pen.measureText(label).width));
      this.gutter = widest ? Math.min(widest + 8, Math.max(width * 0.3, 90)) : 0;
      pen.fillStyle = color("text");
      pen.textBaseline = "middle";
      shown.forEach((label, row) => {
        let text = label;
        while (text.length > 1 && pen.measureText(text).width > this.gutter - 6) text = `${text.slice(0, -2)}…`;
        pen.fillText(text, 2, LABEL + row * ROW + ROW / 2);
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
        pen.fillStyle = at.colors[lane.kinds[item]];
        pen.fillRect(x, top + 2, size > 3 ? size - 0.5 : size, ROW - 4);
        if (this.chosen && this.chosen[0] === row && this.chosen[1] === item) {
          pen.strokeStyle = at.text;
          pen.lineWidth = 2;
          pen.strokeRect(x, top + 2, Math.max(size, 3), ROW - 4);
        }
        if (size > 46) this.name(pen, this.data.names[lane.names[item]], x, top, size, at);
      }
    }

    name(pen, text, x, top, size, at) {
      pen.save();
      pen.beginPath();
      pen.rect(x + 2, top, size - 5, ROW);
      pen.clip();
      pen.fillStyle = at.ground;
      pen.textBaseline = "middle";
      pen.fillText(text, x + 4, top + ROW / 2);
      pen.restore();
    }

    axis(pen, width, height, start, end, line, dim) {
      const steps = Math.max(3, Math.floor(width / 110));
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

  // Shows the rows of all tables that hold every word, as copies below the search box.
  const MOST_TABLES = 12, MOST_ROWS = 6;
  const place = (node) => {
    const titles = [];
    for (let at = node.closest("section"); at; at = at.parentElement.closest("section")) {
      const title = at.querySelector(":scope > h2, :scope > h3, :scope > h4, :scope > details > summary");
      if (title) titles.unshift(title.firstChild.textContent.trim());
    }
    return titles.join(" › ");
  };
  const rowsWith = (words) => {
    const tables = new Map();
    for (const row of document.querySelectorAll("main tbody tr")) {
      row.words ??= [row, ...row.querySelectorAll("[title]")].map((cell) => cell.title || cell.textContent).join(" ").toLowerCase();
      if (!words.every((word) => row.words.includes(word))) continue;
      const table = row.closest("table");
      tables.set(table, [...(tables.get(table) || []), row]);
    }
    return tables;
  };
  const found = (table, rows) => {
    const part = document.createElement("div"), link = document.createElement("a"), copy = document.createElement("table");
    link.href = `#${table.closest("section").id}`;
    link.textContent = place(table);
    const more = rows.length > MOST_ROWS ? `, ${rows.length - MOST_ROWS} more` : "";
    if (table.tHead) copy.append(table.tHead.cloneNode(true));
    copy.createTBody().append(...rows.slice(0, MOST_ROWS).map((row) => row.cloneNode(true)));
    const wide = document.createElement("div");
    wide.className = "wide";
    wide.append(copy);
    part.append(link, more, wide);
    return part;
  };
  const search = (input, panel) => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    panel.hidden = !words.length;
    if (!words.length) return;
    const tables = [...rowsWith(words)];
    const n = tables.reduce((sum, [, rows]) => sum + rows.length, 0);
    const most = tables.length > MOST_TABLES ? `; the first ${MOST_TABLES} tables are shown` : "";
    const told = n ? `Rows found: ${n}, tables: ${tables.length}${most}` : "No row of this page; `longpole table` shows all rows of a table.";
    panel.replaceChildren(told, ...tables.slice(0, MOST_TABLES).map((each) => found(...each)));
  };

  // On a narrow screen each row is a card: its figures need their titles beside them.
  const narrow = matchMedia("(max-width: 40rem)");
  const cards = () => {
    document.documentElement.classList.toggle("cards", narrow.matches);
    if (!narrow.matches) return;
    for (const table of document.querySelectorAll("main table")) {
      const titles = table.tHead ? [...table.tHead.rows[0].cells] : [];
      for (const row of table.tBodies[0].rows)
        titles.forEach((title, at) => {
          const names = title.className === "name" || (at === 0 && title.className);
          if (!names) row.cells[at].dataset.title = title.textContent;
          else if (row.cells[at].textContent === "-") row.cells[at].dataset.none = "";
        });
    }
  };

  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target.querySelector(":scope > details") || target; at; at = at.parentElement)
      if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  };

  // An event that the timeline draws is shown there; the others have a row in the table of events.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const shown = link && link.dataset.from && timelines.get(link.hash.slice(1, -"timeline".length));
    if (shown) {
      event.preventDefault();
      shown.present_stretch(Number(link.dataset.from), Number(link.dataset.length));
      return;
    }
    const parts = link && link.hash.match(/^#(.*)event-(\d+)$/);
    const timeline = parts && timelines.get(parts[1]);
    const place = timeline && timeline.find_event(Number(parts[2]));
    if (!place) return;
    event.preventDefault();
    timeline.present(...place);
  });

  cards();
  narrow.addEventListener("change", cards);
  for (const box of document.querySelectorAll(".lanes")) new Lanes(box);
  const tools = document.getElementById("search");
  if (tools) {
    const panel = document.getElementById("found"), input = tools.querySelector("input");
    tools.hidden = false;
    input.addEventListener("input", () => search(input, panel));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") panel.hidden = true;
    });
    panel.addEventListener("click", (event) => {
      if (event.target.tagName !== "A") return;
      panel.hidden = true;
      if (event.target.hash === location.hash) open();
    });
    document.getElementById("unfold").addEventListener("click", (event) => {
      const folded = document.querySelector("main details:not([open])") !== null;
      for (const part of document.querySelectorAll("main details")) part.open = folded;
      event.target.textContent = folded ? "Fold all" : "Unfold all";
    });
  }
  addEventListener("hashchange", open);
  open();
})();
