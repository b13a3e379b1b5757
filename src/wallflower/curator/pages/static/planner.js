// The planner, alive: slide the loss or change a field, and the plan follows. Without this file everything still works
// by sending the form. Also: buttons that copy a text.
"use strict";

const PAUSE = 200;

const copying = () => {
  for (const box of document.querySelectorAll(".copy")) {
    const button = box.querySelector("button");
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(box.querySelector("code").textContent);
      button.textContent = "Copied";
    });
  }
};

const sliding = (slider, loss, changed) => {
  const follow = () => {
    const [whole, part] = loss.value.split("/");
    const amount = Number(whole) / (part === undefined ? 1 : Number(part));
    if (amount > 0) slider.value = Math.log10(amount);
  };
  slider.hidden = false;
  follow();
  loss.addEventListener("input", follow);
  slider.addEventListener("input", () => {
    loss.value = String(Number((10 ** slider.value).toPrecision(2)));
    slider.setAttribute("aria-valuetext", `ε = ${loss.value}`);
    changed();
  });
};

const planning = form => {
  const plan = document.getElementById("plan"), said = document.getElementById("said");
  let waiting, asked;
  const look = async () => {
    asked?.abort();
    asked = new AbortController();
    const open = [...plan.querySelectorAll("details")].map(one => one.open);
    try {
      const answer = await fetch(form.dataset.plan, {
        method: "POST", body: new URLSearchParams(new FormData(form)), headers: {"X-Fragment": "1"},
        signal: asked.signal,
      });
      if (answer.redirected) return location.reload();
      if (!answer.ok) return;
      plan.innerHTML = await answer.text();
      plan.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? false; });
      said.textContent = plan.querySelector("[data-said]")?.textContent ?? "";
    } catch (error) {
      if (error.name !== "AbortError") said.textContent = "The plan cannot be worked out at the moment.";
    }
  };
  const changed = () => { clearTimeout(waiting); waiting = setTimeout(look, PAUSE); };
  form.addEventListener("input", event => { if (event.target.name) changed(); });
  document.getElementById("replan").hidden = true;
  const slider = document.getElementById("slider"), loss = document.getElementById("f-epsilon");
  if (slider && loss) sliding(slider, loss, changed);
  form.addEventListener("submit", event => {
    const ask = document.getElementById("ask");
    if (ask && event.submitter === ask) setTimeout(() => { ask.disabled = true; ask.textContent = "Asking…"; });
  });
  addEventListener("pageshow", event => { if (event.persisted) location.reload(); });
};

copying();
const form = document.getElementById("planner");
if (form) planning(form);
