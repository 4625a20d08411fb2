// Computes the alarms of a day from the sliders, with the formulas of `daily_alarms`.
(() => {
  const form = document.currentScript.previousElementSibling;
  const systems = JSON.parse(form.dataset.systems);
  const input = name => form.elements[name];
  const valueOf = name => JSON.parse(input(name).dataset.values)[input(name).value];
  const percent = value => `${Number((100 * value).toPrecision(3))} %`;
  const rounded = value => value.toLocaleString("en", { maximumSignificantDigits: 3 });
  const shown = { alarms: rounded, hours: rounded, missed: rounded, precision: value => (Number.isNaN(value) ? "–" : percent(value)) };

  function compute() {
    const [threshold, found, early, wrong] = systems[input("system").value][input("threshold").value];
    const [conversations, share, minutes] = ["conversations", "share", "minutes"].map(valueOf);
    const right = conversations * share * found;
    const alarms = right + conversations * (share * early + (1 - share) * wrong);
    const results = { alarms, hours: (alarms * minutes) / 60, missed: conversations * share * (1 - found), precision: alarms ? right / alarms : NaN };
    for (const [name, value] of Object.entries(results)) {
      const field = form.querySelector(`[data-result=${name}]`);
      field.dataset.value = value;
      field.textContent = shown[name](value);
    }
    const texts = {
      conversations: conversations.toLocaleString("en"),
      share: percent(share) + (Number(input("share").value) === Number(input("share").max) ? " (the paper's test split)" : ""),
      minutes: String(minutes),
      threshold: threshold === null ? "the system's own predictions" : threshold.toPrecision(3),
    };
    for (const [name, text] of Object.entries(texts)) {
      input(name).nextElementSibling.textContent = text;
      input(name).setAttribute("aria-valuetext", text);
    }
  }

  function choose() {
    const thresholds = systems[input("system").value].length;
    input("threshold").max = thresholds - 1;
    input("threshold").value = 0;
    input("threshold").parentElement.hidden = thresholds === 1;
    compute();
  }

  form.onsubmit = event => event.preventDefault();
  form.oninput = event => (event.target.name === "system" ? choose() : compute());
  for (const part of form.querySelectorAll("[hidden]")) part.hidden = false;
  choose();
})();
