"use strict";
(() => {
  // R, G, B and alpha of a picture, by its source: what the file has, no color management between.
  const known = new Map();
  const pixels = (source) => {
    if (!known.has(source)) known.set(source, read(source));
    return known.get(source);
  };
  const read = async (source) => {
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth;
    canvas.height = image.naturalHeight;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const found = context.getImageData(0, 0, canvas.width, canvas.height);
    for (let at = 3; at < found.data.length; at += 4) {
      if (found.data[at] !== 255) throw new Error("damaged"); // what was not decoded is transparent
    }
    return found;
  };

  const amplified = (a, b, times) => {
    const found = new ImageData(a.width, a.height);
    for (let at = 0; at < found.data.length; at += 4) {
      for (let channel = at; channel < at + 3; channel += 1) {
        found.data[channel] = Math.abs(a.data[channel] - b.data[channel]) * times; // clamped
      }
      found.data[at + 3] = 255;
    }
    return found;
  };

  // Each difference scaled to 0 … 255.
  const scaled = async (figure, before, after) => {
    const { label } = figure.dataset;
    const canvas = figure.querySelector("canvas");
    let words = `difference of train and ${label}`;
    try {
      const [a, b] = await Promise.all([pixels(before), pixels(after)]);
      if (a.width !== b.width || a.height !== b.height) throw new Error("sizes differ");
      const levels = amplified(a, b, 1);
      const peak = levels.data.reduce((most, level, at) => (at % 4 === 3 ? most : Math.max(most, level)), 0);
      canvas.width = a.width;
      canvas.height = a.height;
      canvas.getContext("2d").putImageData(peak ? amplified(a, b, 255 / peak) : levels, 0, 0);
      words += peak ? `: 255 is ${peak} level${peak === 1 ? "" : "s"}` : ": no level differs";
    } catch {
      words += " cannot be shown: a picture is damaged";
    }
    canvas.setAttribute("aria-label", words);
    figure.querySelector("figcaption").textContent = words;
  };

  const prepare = (controls) => {
    const look = controls.closest(".look");
    const row = look.querySelector("[data-tensors]");
    const [train, other, difference] = row.querySelectorAll("figure");
    const own = train.querySelector("img");
    const chosen = other.querySelector("img");
    const before = own.src;
    const sources = [before, chosen.src, ...[...row.querySelectorAll("[data-source]")].map((one) => one.dataset.source)];
    const canvas = difference.querySelector("canvas");
    const slider = controls.querySelector("input[type=range]");
    const swap = controls.querySelector("button");
    let turn = 0;

    const draw = async () => {
      turn += 1;
      const mine = turn;
      const radio = controls.querySelector("input[type=radio]:checked");
      const after = sources[Number(radio.value)];
      const label = radio.dataset.label;
      const times = 2 ** Number(slider.value);
      const swapped = swap.getAttribute("aria-pressed") === "true";
      slider.setAttribute("aria-valuetext", `${times} times`);
      controls.querySelector("output").textContent = `${times}×`;
      chosen.src = after;
      chosen.alt = other.querySelector("figcaption").textContent = label;
      own.src = swapped ? after : before;
      own.alt = train.querySelector("figcaption").textContent = swapped ? `${label}, in train’s place` : "train";
      let words = `difference of train and ${label}, ${times}×`;
      const unlike = radio.hasAttribute("data-unlike");
      canvas.hidden = unlike;
      try {
        const [a, b] = await Promise.all([pixels(before), pixels(after)]);
        if (mine !== turn) return;
        if (unlike || a.width !== b.width || a.height !== b.height) throw new Error("sizes differ");
        canvas.width = a.width;
        canvas.height = a.height;
        canvas.getContext("2d").putImageData(amplified(a, b, times), 0, 0);
      } catch {
        if (mine !== turn) return;
        canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
        words = unlike
          ? `not subtracted: ${label} has an input of another shape`
          : `the difference of train and ${label} cannot be shown: a picture is damaged`;
      }
      canvas.setAttribute("aria-label", words);
      difference.querySelector("figcaption").textContent = words;
      difference.hidden = false;
      look.setAttribute("data-shown", `${label}, ${times}`);
    };

    swap.addEventListener("click", () => {
      swap.setAttribute("aria-pressed", String(swap.getAttribute("aria-pressed") !== "true"));
      draw();
    });
    controls.addEventListener("input", draw);
    controls.hidden = false;
    const every = look.querySelector("[data-differences]");
    const figures = every ? [...every.querySelectorAll("figure")] : [];
    if (every) every.hidden = false;
    return Promise.all([draw(), ...figures.map((one) => scaled(one, before, sources[Number(one.dataset.source)]))]);
  };

  Promise.all([...document.querySelectorAll("[data-look]")].map(prepare)).then(() =>
    document.documentElement.setAttribute("data-looks", "drawn"),
  );
})();
