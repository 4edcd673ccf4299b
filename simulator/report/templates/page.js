"use strict";
(() => {
  const { dark: colors, figures } = JSON.parse(document.getElementById("drawings").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)").matches;
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };

  // Colors are translated, data are left alone.
  const painted = (value, night, key = "") => {
    if (typeof value === "string") {
      return night && /color(scale)?$/i.test(key) && Object.hasOwn(colors, value) ? colors[value] : value;
    }
    if (Array.isArray(value)) {
      return value.map((one) => painted(one, night, key));
    }
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, painted(one, night, name)]));
  };

  const PAPER = 670; // pixels between the margins of A4 and of Letter
  const paint = (night, width = undefined) =>
    Promise.all(
      [...document.querySelectorAll("[data-figure]")].map((place) => {
        const { data, layout } = painted(figures[Number(place.dataset.figure)], night);
        if (touch) layout.dragmode = false; // a finger scrolls the page
        Object.assign(layout, { width, autosize: !width });
        return Plotly.react(place, data, layout, config);
      }),
    );

  const draw = () =>
    paint(dark.matches).then(() => document.documentElement.setAttribute("data-drawn", dark.matches ? "dark" : "light"));
  const unfolded = [];
  let printing = false;
  const follow = () => {
    dark.addEventListener("change", () => printing || draw());
    addEventListener("beforeprint", () => {
      printing = true;
      unfolded.push(...document.querySelectorAll("details:not([open])"));
      for (const one of unfolded) one.open = true;
      paint(false, PAPER);
    });
    addEventListener("afterprint", () => {
      printing = false;
      for (const one of unfolded.splice(0)) one.open = false;
      draw();
    });
    return draw();
  };

  // What the page has compressed, and in base64.
  const inflated = (id) => {
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
  };
  const load = async () => {
    if (!document.getElementById("charts")) return;
    const script = document.createElement("script");
    script.textContent = await inflated("charts").text();
    document.head.append(script); // the policy allows its hash
  };
  load().then(follow).catch((error) => {
    for (const place of document.querySelectorAll("[data-figure]")) {
      place.textContent = `This browser cannot draw the figure; its numbers are in summary.json. (${error})`;
    }
  });

  const save = document.getElementById("records");
  save?.addEventListener("click", async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([await inflated("packed").blob()], { type: "text/csv" }));
    link.download = "records.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });
})();
