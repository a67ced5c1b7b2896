"use strict";
// Values under the pointer or, by arrow keys, under the cursor; boxes of the legend hide curves.
(() => {
  const labels = JSON.parse(document.getElementById("labels").textContent);
  const points = JSON.parse(document.getElementById("points").textContent);
  const hidden = new Set();
  const shown = (value) => (value === null ? "-" : Number(value.toPrecision(4)).toString());

  const places = (chart) => {
    const all = new Set();
    for (const curve of points[chart.id]) curve.x.forEach((x) => all.add(x));
    return [...all].sort((a, b) => a - b);
  };
  const nearest = (values, x) =>
    values.reduce((best, v, i) => (Math.abs(v - x) < Math.abs(values[best] - x) ? i : best), 0);

  const describe = (chart, x) => {
    const lines = [`x = ${shown(x)}`];
    for (const curve of points[chart.id]) {
      const i = nearest(curve.x, x);
      if (hidden.has(curve.label) || !curve.x.length || curve.mean[i] === null) continue;
      const band = curve.low[i] === null ? "" : ` [${shown(curve.low[i])}, ${shown(curve.high[i])}]`;
      lines.push(`${labels[curve.label]}: ${shown(curve.mean[i])}${band}, n = ${curve.num_runs[i]}`);
    }
    return lines;
  };

  const clear = (chart) => {
    chart.querySelectorAll(".cursor").forEach((line) => line.remove());
    chart.parentNode.querySelectorAll(".values").forEach((box) => box.remove());
  };

  const show = (chart, x) => {
    clear(chart);
    const d = chart.dataset;
    const share = (x - Number(d.x0)) / (Number(d.x1) - Number(d.x0));
    const across = Number(d.left) + share * (Number(d.right) - Number(d.left));
    const line = document.createElementNS(chart.namespaceURI, "line");
    line.setAttribute("class", "cursor");
    for (const [key, value] of [["x1", across], ["x2", across], ["y1", d.top], ["y2", d.bottom]])
      line.setAttribute(key, value);
    chart.append(line);
    const box = document.createElement("div");
    box.className = "values";
    box.setAttribute("role", "status");
    for (const text of describe(chart, x)) {
      const row = document.createElement("div");
      row.textContent = text;
      box.append(row);
    }
    const right = across / chart.viewBox.baseVal.width > 0.5;
    box.style[right ? "left" : "right"] = "0.5rem";
    box.style.top = "2rem";
    chart.parentNode.append(box);
  };

  document.querySelectorAll(".chart").forEach((chart) => {
    const known = places(chart);
    if (!known.length) return;
    let at = -1;
    chart.addEventListener("pointermove", (event) => {
      const rect = chart.getBoundingClientRect();
      const d = chart.dataset;
      const pixel = ((event.clientX - rect.left) / rect.width) * chart.viewBox.baseVal.width;
      const share = (pixel - Number(d.left)) / (Number(d.right) - Number(d.left));
      at = nearest(known, Number(d.x0) + share * (Number(d.x1) - Number(d.x0)));
      show(chart, known[at]);
    });
    chart.addEventListener("pointerleave", () => clear(chart));
    chart.addEventListener("blur", () => clear(chart));
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") clear(chart);
      if (step === undefined) return;
      event.preventDefault();
      at = Math.min(Math.max(at + step, 0), known.length - 1);
      show(chart, known[at]);
    });
  });

  document.querySelectorAll(".legend input").forEach((box) => {
    box.addEventListener("change", () => {
      const number = Number(box.value);
      box.checked ? hidden.delete(number) : hidden.add(number);
      document
        .querySelectorAll(`.curve[data-curve="${number}"]`)
        .forEach((curve) => curve.classList.toggle("hidden", !box.checked));
    });
  });
})();
