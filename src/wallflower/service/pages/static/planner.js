// Plans follow the form while it is filled in: only the plan is asked for, and an old one never outlives a newer wish.
// The address holds what the form says, so a reload, Back and a link bring it again. Without this file everything still
// works by sending the form. Also: buttons that copy a text, and forms that are sent once.
"use strict";

const PAUSE = 200;

const copying = () => {
  for (const box of document.querySelectorAll(".copy")) {
    const button = box.querySelector("button");
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(box.querySelector("pre").textContent);
      button.textContent = "Copied";
    });
  }
};

const paying = pay => pay.form.addEventListener("submit", () => setTimeout(() => {
  pay.disabled = true;
  pay.textContent = "Asking…";
}));

// While something is pressed that acts when it is let go, nothing moves: what came in between would push it from under
// the pointer, and the press be lost. Gives a function to wait with. The slider is not meant: plans follow it as it goes.
const stillness = () => {
  let isPressed = false;
  const held = [];
  const release = () => {
    isPressed = false;
    setTimeout(() => held.splice(0).forEach(go => go()));  // a click comes right behind the release
  };
  addEventListener("pointerdown", event => {
    isPressed = Boolean(event.target.closest("a, button, label, summary, select, [type=checkbox]"));
  }, true);
  addEventListener("pointermove", event => event.buttons || release(), true);  // let go outside of the window
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, release, true);
  addEventListener("blur", release);  // of the window: a field that loses the focus to a button does not count
  return () => new Promise(go => isPressed ? held.push(go) : go());
};

const amountOf = text => {
  const [whole, part] = text.split("/");
  return Number(whole) / (part === undefined ? 1 : Number(part));
};

// The slider is on a log scale between the ends of the chart; `fit` moves it to other ends and marks.
const sliding = (slider, loss) => {
  const log = value => String(Math.log10(value));
  const follow = () => {
    const amount = amountOf(loss.value);
    if (amount > 0) slider.value = log(amount);
    slider.setAttribute("aria-valuetext", `ε = ${loss.value}`);
  };
  const fit = state => {
    if (state?.dataset.low) {
      slider.min = log(state.dataset.low);
      slider.max = log(state.dataset.high);
    }
    const marks = [...(state?.querySelectorAll("[data-mark]") ?? [])].map(mark => {
      const option = document.createElement("option");
      option.value = log(mark.dataset.mark);
      option.label = mark.textContent;
      return option;
    });
    document.getElementById("marks").replaceChildren(...marks);
    follow();
  };
  slider.min = log(slider.min);
  slider.max = log(slider.max);
  slider.hidden = false;
  loss.addEventListener("input", follow);
  slider.addEventListener("input", () => {
    const isLast = slider.max - slider.value < slider.step;  // steps need not reach the end
    loss.value = String(Number((10 ** (isLast ? slider.max : slider.value)).toPrecision(2)));
    slider.setAttribute("aria-valuetext", `ε = ${loss.value}`);
  });
  return fit;
};

// A setting is shown, and sent, while its mode is chosen. One that was given without a mode stays, to be seen.
const choosing = form => {
  const chosen = name => {
    const boxes = form.querySelectorAll(`input[type=checkbox][name="${CSS.escape(name)}"]`);
    return boxes.length ? [...boxes].some(box => box.checked) && "ticked" : form.elements[name]?.value ?? "";
  };
  const fit = first => {
    for (const field of form.querySelectorAll("[data-chooser]")) {
      const mode = chosen(field.dataset.chooser);
      if (first && !field.hidden && !mode) continue;
      field.hidden = field.dataset.choice ? mode !== field.dataset.choice : !mode;
      for (const control of field.querySelectorAll("input, select, textarea, fieldset")) control.disabled = field.hidden;
    }
  };
  form.addEventListener("input", () => fit(false));
  fit(true);
};

// What a form asks, as one text; the box that wants an answer of no use is part of no plan.
const written = form => {
  const fields = new FormData(form);
  fields.delete("force");
  return String(new URLSearchParams(fields));
};

// The form that the plan on the page was made for, whatever was typed, or put back by the browser, since it came.
const untouched = form => {
  const copy = form.cloneNode(true);
  copy.reset();
  return written(copy);
};

// Keep what the form says in the address, but for what proves where it comes from.
const keep = form => {
  const fields = new FormData(form);
  for (const name of ["proof", "nonce"]) fields.delete(name);
  const given = new URLSearchParams([...fields].filter(([, value]) => value !== ""));
  history.replaceState(null, "", `${form.dataset.plan}?${given}`);
};

// Why a page was refused, in its own words.
const refusal = page => new DOMParser().parseFromString(page, "text/html").querySelector("[role=alert]")?.textContent;

// What the plan says of single fields: what is wrong with them, and what they are on the scale of the question.
const telling = (form, state) => {
  const said = (kind, name) => state?.querySelector(`[data-${kind}="${CSS.escape(name)}"]`)?.textContent ?? "";
  for (const field of form.querySelectorAll("[data-field]")) {
    const fault = field.querySelector("[data-fault]"), aside = field.querySelector("[data-aside]");
    const words = said("wrong", field.dataset.field);
    if (fault) fault.textContent = words;
    if (words) field.closest("details.more")?.setAttribute("open", "");
    if (aside) aside.textContent = said("beside", field.dataset.field);
    const control = field.querySelector("[aria-describedby]:not([type=range])");
    if (words) control?.setAttribute("aria-invalid", "true");
    else control?.removeAttribute("aria-invalid");
  }
};

const planning = form => {
  const plan = document.getElementById("plan"), said = document.getElementById("said");
  const replan = document.getElementById("replan"), ask = document.getElementById("ask");
  const effect = document.getElementById("effect");
  choosing(form);
  const slider = document.getElementById("slider"), loss = document.getElementById("f-epsilon");
  const fit = slider && loss ? sliding(slider, loss) : () => {};
  const still = stillness();
  let wanted = untouched(form);  // the form whose plan is shown, or on its way
  let waiting, asked;
  const settle = () => {
    plan.removeAttribute("aria-busy");
    effect.removeAttribute("data-stale");
    const words = plan.querySelector("[data-said]")?.textContent ?? "";
    effect.textContent = words;
    if (ask) ask.disabled = !plan.querySelector(".verdict");
    return words;
  };
  const show = made => {
    const open = [...plan.querySelectorAll("details")].map(one => one.open);
    const ticked = plan.querySelector("[name=force]")?.checked;
    plan.innerHTML = made;
    if (ticked) plan.querySelector("[name=force]")?.setAttribute("checked", "");
    plan.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? false; });
    const state = plan.querySelector("[data-state]");
    telling(form, state);
    fit(state);
    said.textContent = settle();
    replan.hidden = true;
  };
  const fail = why => {
    const words = document.createElement("p");
    words.className = "notice bad";
    words.textContent = said.textContent = `There is no plan of what the form says now. ${why}`;
    plan.replaceChildren(words);
    replan.hidden = false;
    wanted = undefined;
    settle();
  };
  // What takes longer than the plan follows it by itself, while the plan can be read and paid already.
  const follow = () => {
    const offers = [...plan.querySelectorAll("[data-more]")];
    for (const offer of offers) {
      const words = document.createElement("p");
      words.className = `quiet ${offer.className}`;
      words.textContent = offer.dataset.words;
      offer.replaceWith(words);
    }
    if (offers.length) look(offers.map(offer => offer.dataset.more));
  };
  const look = async (more = []) => {
    asked = new AbortController();
    const signal = asked.signal;
    try {
      const body = new URLSearchParams(new FormData(form));
      for (const one of more) body.set(one, "yes");
      const answer = await fetch(form.dataset.plan, {method: "POST", body, headers: {"X-Fragment": "1"}, signal});
      if (answer.redirected) return location.reload();  // signed out: the address brings the form back
      const text = await answer.text();
      await still();
      if (signal.aborted) return;
      if (answer.ok) {
        show(text);
        if (!more.length) follow();
      } else if (!more.length) fail(refusal(text) ?? "The service could not work it out. Try again in a little while.");
    } catch (error) {
      if (signal.aborted || more.length) return;  // a later plan is on its way, or this one is there already
      fail("The service does not answer. Try again when it can be reached.");
    }
  };
  const compare = () => {
    if (written(form) === wanted) return;
    wanted = written(form);
    keep(form);
    asked?.abort();
    clearTimeout(waiting);
    plan.setAttribute("aria-busy", "true");
    effect.setAttribute("data-stale", "");
    if (ask) ask.disabled = true;
    waiting = setTimeout(() => look(), PAUSE);
  };
  replan.hidden = true;
  fit(plan.querySelector("[data-state]"));
  if (ask) ask.disabled = !plan.querySelector(".verdict");
  form.addEventListener("input", compare);
  form.addEventListener("change", compare);
  addEventListener("pageshow", event => event.persisted ? location.reload() : compare());
  compare();
  if (!plan.hasAttribute("aria-busy")) follow();
};

// A form that is sent after the session has ended comes back empty once somebody has signed in again: what was typed
// into it waits in this tab, for whoever typed it, and nowhere else. Secrets and observations are never kept.
const restoring = () => {
  const who = document.querySelector("form.who span")?.textContent;
  const key = form => `typed ${who} ${location.pathname} ${form.getAttribute("action")}`;
  const isKept = one => one.name && !["hidden", "password", "submit"].includes(one.type)
    && one.autocomplete !== "one-time-code" && !("unkept" in one.dataset);
  const fields = form => [...form.elements].filter(isKept);
  if (who === undefined) return;  // nobody is signed in, and nothing but a secret is typed
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith("typed ") && !name.startsWith(`typed ${who} `)) sessionStorage.removeItem(name);
  }
  document.querySelector("form.who").addEventListener("submit", () => sessionStorage.clear());
  for (const form of document.querySelectorAll("form[method=post]:not(#planner, .who)")) {
    if (location.hash === "#typed") {
      const kept = new URLSearchParams(sessionStorage.getItem(key(form)) ?? "");
      for (const one of fields(form)) {
        if (one.type === "checkbox" || one.type === "radio") one.checked ||= kept.getAll(one.name).includes(one.value);
        else if (kept.has(one.name)) one.value = kept.get(one.name);
      }
    }
    sessionStorage.removeItem(key(form));
    form.addEventListener("submit", () => {
      const typed = fields(form).filter(one => !["checkbox", "radio"].includes(one.type) || one.checked);
      sessionStorage.setItem(key(form), new URLSearchParams(typed.map(one => [one.name, one.value])));
    });
  }
};

copying();
restoring();
const form = document.getElementById("planner"), pay = document.getElementById("pay");
if (form) planning(form);
if (pay) paying(pay);
