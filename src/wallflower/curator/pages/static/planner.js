// The planner, alive: slide the loss or change a field, and the plan follows, or says why it cannot. Without this file
// everything still works by sending the form. Also: buttons that copy a text.
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

const sliding = (slider, loss) => {
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
  });
};

// A setting is shown, and sent, while its mode is chosen, or while none is.
const choosing = form => {
  const fit = () => {
    for (const field of form.querySelectorAll("[data-chooser]")) {
      const chosen = form.elements[field.dataset.chooser].value;
      field.hidden = chosen !== "" && chosen !== field.dataset.choice;
      for (const control of field.querySelectorAll("input, select, textarea")) control.disabled = field.hidden;
    }
  };
  form.addEventListener("input", fit);
  fit();
};

// What a form asks, as one text; the box that wants an answer of no use is part of no plan.
const written = form => {
  const fields = new FormData(form);
  fields.delete("anyway");
  return String(new URLSearchParams(fields));
};

// The form that the plan on the page was made for, whatever was typed, or put back by the browser, since it came.
const untouched = form => {
  const copy = form.cloneNode(true);
  copy.reset();
  return written(copy);
};

// Why a page was refused, in its own words.
const refusal = page => new DOMParser().parseFromString(page, "text/html").querySelector("[role=alert]")?.textContent;

const planning = form => {
  const plan = document.getElementById("plan"), said = document.getElementById("said");
  const replan = document.getElementById("replan");
  choosing(form);
  let wanted = untouched(form);  // the form whose plan is shown, or on its way
  let waiting, asked;
  const show = made => {
    const open = [...plan.querySelectorAll("details")].map(one => one.open);
    plan.innerHTML = made;
    plan.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? false; });
    said.textContent = plan.querySelector("[data-said]")?.textContent ?? "";
    replan.hidden = true;
  };
  const fail = why => {
    const words = document.createElement("p");
    words.className = "notice bad";
    words.textContent = said.textContent = `There is no plan of what the form says now. ${why}`;
    plan.replaceChildren(words);
    replan.hidden = false;
    wanted = undefined;
  };
  const look = async () => {
    asked = new AbortController();
    const signal = asked.signal;
    try {
      const body = new URLSearchParams(new FormData(form));
      const answer = await fetch(form.dataset.plan, {method: "POST", body, headers: {"X-Fragment": "1"}, signal});
      if (answer.redirected) return location.reload();
      const text = await answer.text();
      if (answer.ok) show(text);
      else fail(refusal(text) ?? "The service could not work it out. Try again in a little while.");
    } catch (error) {
      if (signal.aborted) return;  // a later plan is on its way
      fail("The service does not answer. Try again when it can be reached.");
    }
    plan.removeAttribute("aria-busy");
  };
  const compare = () => {
    if (written(form) === wanted) return;
    wanted = written(form);
    asked?.abort();
    clearTimeout(waiting);
    plan.setAttribute("aria-busy", "true");
    waiting = setTimeout(look, PAUSE);
  };
  replan.hidden = true;
  const slider = document.getElementById("slider"), loss = document.getElementById("f-epsilon");
  if (slider && loss) sliding(slider, loss);
  form.addEventListener("input", compare);
  form.addEventListener("submit", event => {
    const ask = document.getElementById("ask");
    if (ask && event.submitter === ask) setTimeout(() => { ask.disabled = true; ask.textContent = "Asking…"; });
  });
  addEventListener("pageshow", event => event.persisted ? location.reload() : compare());
  compare();
};

copying();
const form = document.getElementById("planner");
if (form) planning(form);
